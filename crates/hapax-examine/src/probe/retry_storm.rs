//! V14: a client whose patience is shorter than the work takes asks again and again.

use std::time::Duration;

use futures_util::future::join_all;

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    Defect, ExamRequest, Examiner, Exchange, ExchangeEnd, ProbeInterruption, ProbeLog,
    overlap::{TrialFindings, judge_overlapping, judge_settled},
    recovery::Slowable,
    wire::Receiving,
};

pub(super) const PROBE: Probe = Probe {
    id: "V14",
    name: "retry-storm",
    question: "Do retries of somebody whose patience is short have one effect?",
    needs: &[],
    operations_max: 5,
    run: |examiner, log| run(examiner, log),
};

/// How long the client is patient, as parts of the time that an answer takes.
const PATIENCE: [f64; 5] = [0.5, 0.5, 0.3, 0.2, 0.1];
const TRIALS: u32 = 2;
const INTERVAL_MAX: Duration = Duration::from_millis(50);
const INTERVAL_MIN: Duration = Duration::from_millis(5);
const RETRIES_MIN: u32 = 10;
const RETRIES_MAX: u32 = 40;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut server = Slowable::new(examiner);
        let tried = storm_until_told(examiner, log, &mut server).await;
        server.restore().await?;
        tried
    })
}

async fn storm_until_told(
    examiner: &Examiner,
    log: &ProbeLog,
    server: &mut Slowable<'_>,
) -> Result<ProbeVerdict, ProbeInterruption> {
    let mut findings = TrialFindings::default();
    for (attempt, part) in (0..).zip(PATIENCE) {
        if attempt >= TRIALS && findings.trials() == 0 {
            server.slow_down(log).await?;
        }
        let latency = server.latency();
        if let Some(defects) = storm(examiner, log, latency, latency.mul_f64(part)).await? {
            findings.add(defects);
        }
        if findings.is_decided() || findings.trials() >= TRIALS {
            break;
        }
    }
    Ok(findings.verdict(&format!(
        "the first answer came before the client lost patience: {} would help",
        server.wanted()
    )))
}

/// Retries while the first is running, of which every other one is left as well; nothing if the first was answered.
async fn storm(
    examiner: &Examiner,
    log: &ProbeLog,
    latency: Duration,
    patience: Duration,
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let request = examiner.fresh()?;
    // So that most come while the first runs, and some after it.
    let interval = (latency / 6).clamp(INTERVAL_MIN, INTERVAL_MAX);
    let retries = (latency.mul_f64(1.25).as_millis() / interval.as_millis().max(1))
        .clamp(u128::from(RETRIES_MIN), u128::from(RETRIES_MAX));
    let retries = u32::try_from(retries).unwrap_or(RETRIES_MAX);
    let asked = (0..=retries).map(|at| {
        let request = &request;
        async move {
            tokio::time::sleep(interval * at).await;
            let patience = if at % 2 == 0 { patience } else { examiner.patience() };
            ask_for(examiner, log, &format!("attempt {}", at + 1), request, patience).await
        }
    });
    let mut exchanges = join_all(asked).await;
    let has_left = exchanges.first().is_some_and(|first| match &first.end {
        ExchangeEnd::BrokenOff { received } => received.is_empty(),
        ExchangeEnd::Answered(_)
        | ExchangeEnd::Closed { .. }
        | ExchangeEnd::Silent { .. }
        | ExchangeEnd::Failed { .. } => false,
    });
    let last = examiner.ask_until_settled(log, "afterwards", &request).await;
    examiner.rest().await;
    let effects = examiner.effects(log, &request.marker).await?;
    let after = "its client came again and again";
    let stuck = judge_settled(examiner, after, &last);
    let is_settled = last.succeeded();
    exchanges.push(last);
    let all: Vec<_> = exchanges.iter().collect();
    let mut defects = judge_overlapping(examiner, &all, effects);
    defects.extend(stuck);
    Ok(((has_left && is_settled) || !defects.is_empty()).then_some(defects))
}

/// Asks, and leaves if there is no answer within this time.
async fn ask_for(
    examiner: &Examiner,
    log: &ProbeLog,
    label: &str,
    request: &ExamRequest,
    patience: Duration,
) -> Exchange {
    let addressed = examiner.addressed(0, request);
    match examiner.wire().send(log, label, addressed, Receiving::Ordinary).await {
        Ok(sent) => sent.read_or_leave(log, patience).await,
        Err(failed) => failed,
    }
}
