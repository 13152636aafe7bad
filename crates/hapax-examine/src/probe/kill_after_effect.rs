//! V24:

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V24",
    name: "kill-after-effect",
    question: "Is an effect not repeated if the server is killed before it answers?",
    needs: &[ProbeNeed::KillHook, ProbeNeed::Count],
    operations_max: 10,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
