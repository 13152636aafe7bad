//! V06:

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V06",
    name: "reordered-body",
    question: "Is the same content in another order answered, each time alike?",
    needs: &[],
    operations_max: 2,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
