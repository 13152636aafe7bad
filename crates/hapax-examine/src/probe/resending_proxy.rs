//! V32: a proxy between client and API sends again by itself.

use futures_util::future::join;

use super::{Probe, ProbeFuture};
use crate::{
    Defect, Examiner, ProbeInterruption, ProbeLog,
    overlap::{TrialFindings, is_overlap, judge_overlapping, judge_settled},
    wire::{ProxyFault, ResendingProxy},
};

pub(super) const PROBE: Probe = Probe {
    id: "V32",
    name: "resending-proxy",
    question: "Does a proxy that resends by itself cause no second effect?",
    needs: &[],
    operations_max: 6,
    run: |examiner, log| run(examiner, log),
};

/// How long the proxy waits, as parts of the time that an answer takes: shorter if the answer came before.
const PATIENCE: [f64; 5] = [0.5, 0.5, 0.25, 0.1, 0.0];
const TRIALS: u32 = 3;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = TrialFindings::default();
        let impatient = PATIENCE.map(|part| examiner.learned().latency.mul_f64(part));
        let faults = impatient.map(ProxyFault::Impatient);
        for fault in [ProxyFault::Loses].into_iter().chain(faults) {
            if let Some(defects) = through(examiner, log, fault).await? {
                findings.add(defects);
            }
            if findings.is_decided() || findings.trials() >= TRIALS {
                break;
            }
        }
        Ok(findings.verdict("our own proxy on this machine could not be used"))
    })
}

/// Asks through a proxy that sends twice; nothing if it did not come to that.
async fn through(
    examiner: &Examiner,
    log: &ProbeLog,
    fault: ProxyFault,
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let request = examiner.fresh()?;
    let Ok(proxy) = ResendingProxy::bind().await else { return Ok(None) };
    let (wire, patience, address) = (examiner.wire(), examiner.patience(), proxy.address.clone());
    // The proxy waits for two answers, one after the other.
    let asking = wire.ask(log, "through the proxy", &address, &request, patience * 3);
    let passing = proxy.pass_on(wire, log, (examiner.address(), fault), patience);
    let (asked, passed) = join(asking, passing).await;
    let Some([first, second]) = passed else { return Ok(None) };
    let last = examiner.ask_until_settled(log, "afterwards", &request).await;
    let effects = examiner.effects(log, &request.marker).await?;
    let all = [&asked, &first, &second, &last];
    let mut defects = judge_overlapping(examiner, &all, effects);
    defects.extend(judge_settled(examiner, "a proxy sent it twice", &last));
    let is_told = first.answer().is_some()
        && second.answer().is_some()
        && match fault {
            ProxyFault::Loses => true,
            ProxyFault::Impatient(_) => is_overlap(&[&first, &second]),
        };
    Ok((is_told || !defects.is_empty()).then_some(defects))
}
