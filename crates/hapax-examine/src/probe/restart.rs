//! V25:

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V25",
    name: "restart",
    question: "Is a key still known after a restart?",
    needs: &[ProbeNeed::KillHook],
    operations_max: 2,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
