//! V28:

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V28",
    name: "large-answer",
    question: "Is a large answer replayed to its last byte?",
    needs: &[ProbeNeed::LargeAnswer],
    operations_max: 1,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
