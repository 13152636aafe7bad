//! V29:

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V29",
    name: "reads-while-running",
    question: "Do reads never see an effect twice while duplicates run?",
    needs: &[ProbeNeed::Count],
    operations_max: 6,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
