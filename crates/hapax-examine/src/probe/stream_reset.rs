//! V15: an HTTP/2 stream is reset before its answer, and asked again.

use std::time::Duration;

use super::{Probe, ProbeFuture, ProbeNeed};
use crate::{
    Defect, Examiner, ExchangeEnd, ProbeInterruption, ProbeLog,
    judge::judge_duplicates,
    overlap::{TrialFindings, judge_settled},
};

pub(super) const PROBE: Probe = Probe {
    id: "V15",
    name: "stream-reset",
    question: "Does a reset of an HTTP/2 stream, and a retry, have one effect?",
    needs: &[ProbeNeed::Http2],
    operations_max: 8,
    run: |examiner, log| run(examiner, log),
};

/// When it is reset, as parts of the time that an answer takes. Late ones are tried as well, as nobody sees from outside
/// whether the work has begun.
const MOMENTS: [f64; 8] = [0.5, 0.75, 0.25, 0.6, 0.4, 0.25, 0.1, 0.0];
const TRIALS: u32 = 4;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = TrialFindings::default();
        for moment in MOMENTS {
            let after = examiner.learned().latency.mul_f64(moment);
            if let Some(defects) = reset(examiner, log, after).await? {
                findings.add(defects);
            }
            if findings.is_decided() || findings.trials() >= TRIALS {
                break;
            }
        }
        Ok(findings.verdict(
            "every answer came before its stream could be reset: a slower operation would help",
        ))
    })
}

/// Asks, resets the stream after this time, and asks again; nothing if the answer had come before.
async fn reset(
    examiner: &Examiner,
    log: &ProbeLog,
    after: Duration,
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let request = examiner.fresh()?;
    let addressed = examiner.addressed(0, &request);
    let left = examiner.wire().reset_http2(log, "reset", addressed, after).await;
    let is_reset = match &left.end {
        ExchangeEnd::BrokenOff { .. } => true,
        ExchangeEnd::Answered(_)
        | ExchangeEnd::Closed { .. }
        | ExchangeEnd::Silent { .. }
        | ExchangeEnd::Failed { .. } => false,
    };
    let retry = examiner.ask_until_settled(log, "retry", &request).await;
    examiner.rest().await;
    let effects = examiner.effects(log, &request.marker).await?;
    let mut defects = judge_duplicates(examiner, &[&left, &retry], effects);
    defects.extend(judge_settled(examiner, "its stream was reset before the answer", &retry));
    Ok(((is_reset && retry.succeeded()) || !defects.is_empty()).then_some(defects))
}
