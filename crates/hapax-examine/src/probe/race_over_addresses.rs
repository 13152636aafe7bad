//! V04:

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V04",
    name: "race-over-addresses",
    question: "Do duplicates that come at once to two instances have one effect?",
    needs: &[ProbeNeed::SecondAddress],
    operations_max: 0,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
