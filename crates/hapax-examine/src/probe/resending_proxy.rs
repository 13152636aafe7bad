//! V32:

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{Examiner, ProbeLog};

pub(super) const PROBE: Probe = Probe {
    id: "V32",
    name: "resending-proxy",
    question: "Does a proxy that resends by itself cause no second effect?",
    needs: &[],
    operations_max: 6,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(_examiner: &'a Examiner, _log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move { Ok(ProbeVerdict::inconclusive("to be written")) })
}
