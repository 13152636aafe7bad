//! V16:

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V16",
    name: "retry-while-running",
    question: "Does a retry wait or hear 409 while the first runs, and the answer afterwards?",
    needs: &[],
    operations_max: 4,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
