//! V31: duplicates on one connection, sent without waiting for answers.

use super::{Probe, ProbeFuture};
use crate::{
    Defect, DefectClass, Examiner, Exchange, ProbeInterruption, ProbeLog,
    overlap::{TrialFindings, judge_overlapping, judge_settled},
};

pub(super) const PROBE: Probe = Probe {
    id: "V31",
    name: "pipeline",
    question: "Have two duplicates on one connection one effect, and answers in order?",
    needs: &[],
    operations_max: 4,
    run: |examiner, log| run(examiner, log),
};

const TRIALS: u32 = 2;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = TrialFindings::default();
        for _ in 0..TRIALS {
            if let Some(defects) = pipeline(examiner, log).await? {
                findings.add(defects);
            }
            if findings.is_decided() {
                break;
            }
        }
        Ok(findings.verdict("requests that come on one connection at once are not all answered"))
    })
}

/// Two duplicates and another operation behind them; nothing if the duplicates were not both answered.
async fn pipeline(
    examiner: &Examiner,
    log: &ProbeLog,
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let (request, other) = (examiner.fresh()?, examiner.fresh()?);
    let sent = [&request, &request, &other].map(|request| examiner.addressed(0, request));
    let answered = examiner.wire().pipeline(log, &sent, examiner.patience()).await;
    let [first, second, third] = answered.as_slice() else { return Ok(None) };
    let afterwards = examiner.ask_until_settled(log, "afterwards", &request).await;
    let other_afterwards = examiner.ask_until_settled(log, "other afterwards", &other).await;
    let effects = examiner.effects(log, &request.marker).await?;
    let other_effects = examiner.effects(log, &other.marker).await?;
    let mut defects = judge_overlapping(examiner, &[first, second, &afterwards], effects);
    defects.extend(judge_overlapping(examiner, &[third, &other_afterwards], other_effects));
    defects.extend(judge_settled(examiner, "two came on one connection at once", &afterwards));
    defects.extend(swapped(first, third, &other_afterwards));
    let is_told = first.succeeded() && second.answer().is_some();
    Ok((is_told || !defects.is_empty()).then_some(defects))
}

/// The answer to the other operation came where that to the first was due.
fn swapped(first: &Exchange, third: &Exchange, other_afterwards: &Exchange) -> Option<Defect> {
    let body = |exchange: &Exchange| {
        exchange.answer().filter(|answer| answer.is_success()).map(|answer| answer.body.clone())
    };
    let is_other = body(first)? == body(other_afterwards)? && body(first)? != body(third)?;
    is_other.then(|| Defect {
        class: DefectClass::Safety,
        sentence: "of requests on one connection, one was answered with what was another one's"
            .to_owned(),
        advice: "answer the requests of a connection in their order",
        shown_by: vec![first.number, third.number, other_afterwards.number],
    })
}
