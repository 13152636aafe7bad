//! V23:

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V23",
    name: "kill-while-running",
    question: "Does a key survive a kill while its request runs, with one effect?",
    needs: &[ProbeNeed::KillHook, ProbeNeed::Count],
    operations_max: 10,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
