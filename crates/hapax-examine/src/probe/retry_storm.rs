//! V14:

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V14",
    name: "retry-storm",
    question: "Do retries of somebody whose patience is short have one effect?",
    needs: &[],
    operations_max: 4,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
