//! V11: whoever asked leaves before the answer, and asks again.

use std::time::Duration;

use super::{Probe, ProbeFuture};
use crate::{
    CutEnd, Defect, Examiner, ExchangeEnd, ProbeInterruption, ProbeLog,
    judge::judge_duplicates,
    overlap::{TrialFindings, judge_settled},
    wire::Receiving,
};

pub(super) const PROBE: Probe = Probe {
    id: "V11",
    name: "cut-before-answer",
    question: "Whoever leaves before the answer, and asks again: is there one effect, and an answer in the end?",
    needs: &[],
    operations_max: 12,
    run: |examiner, log| run(examiner, log),
};

const ENDS: [CutEnd; 3] = [CutEnd::Finish, CutEnd::Reset, CutEnd::Silence];
/// When they leave, as parts of the time that an answer takes: earlier if it had come by then. Each is this or less, by
/// chance, but more than the next.
const MOMENTS: [f64; 4] = [0.5, 0.25, 0.1, 0.0];

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = TrialFindings::default();
        let mut ends = 0;
        let mut chance = examiner.chance(PROBE.id);
        for end in ENDS {
            let moments = MOMENTS.map(|most| most * (0.6 + 0.4 * chance.f64()));
            for moment in moments {
                let after = examiner.learned().latency.mul_f64(moment);
                if let Some(defects) = leave(examiner, log, end, after).await? {
                    findings.add(defects);
                    ends += 1;
                    break;
                }
            }
        }
        if ends < ENDS.len() {
            findings = findings.unless_sound();
        }
        Ok(findings.verdict(
            "answers came before we could leave, or retries had no success: a slower operation would help",
        ))
    })
}

/// Asks, leaves after this time, and asks again until that is answered; nothing if the answer had come before.
async fn leave(
    examiner: &Examiner,
    log: &ProbeLog,
    end: CutEnd,
    after: Duration,
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let request = examiner.fresh()?;
    let addressed = examiner.addressed(0, &request);
    let sent = examiner.wire().send(log, "left", addressed, Receiving::Ordinary).await;
    let Ok(sent) = sent else { return Ok(None) };
    tokio::time::sleep(after).await;
    let broken = sent.break_off(log, (0, end), Duration::ZERO).await;
    let has_come = match &broken.exchange.end {
        ExchangeEnd::BrokenOff { received } => !received.is_empty(),
        ExchangeEnd::Answered(_)
        | ExchangeEnd::Closed { .. }
        | ExchangeEnd::Silent { .. }
        | ExchangeEnd::Failed { .. } => true,
    };
    let retry = examiner.ask_until_settled(log, "retry", &request).await;
    examiner.rest().await;
    let effects = examiner.effects(log, &request.marker).await?;
    let mut defects = judge_duplicates(examiner, &[&broken.exchange, &retry], effects);
    let after = match end {
        CutEnd::Finish => "its client hung up before the answer",
        CutEnd::Reset => "its client reset the connection before the answer",
        CutEnd::Silence => "its client fell silent before the answer",
    };
    defects.extend(judge_settled(examiner, after, &retry));
    let is_told = !has_come && retry.succeeded();
    Ok((is_told || !defects.is_empty()).then_some(defects))
}
