//! V31:

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V31",
    name: "pipeline",
    question: "Have two duplicates on one connection one effect, and answers in order?",
    needs: &[],
    operations_max: 4,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
