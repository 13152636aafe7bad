//! V12: whoever asked leaves within the answer, and asks again.

use super::{Probe, ProbeFuture, ProbeVerdict};
use crate::{
    CutEnd, Defect, DefectClass, ExamRequest, Examiner, Exchange, ExchangeEnd, ProbeInterruption,
    ProbeLog,
    judge::judge_duplicates,
    overlap::{TrialFindings, judge_settled},
    wire::Receiving,
};

pub(super) const PROBE: Probe = Probe {
    id: "V12",
    name: "cut-in-answer",
    question: "Whoever leaves within the answer, and asks again: is there one effect, and the whole answer?",
    needs: &[],
    operations_max: 13,
    run: |examiner, log| run(examiner, log),
};

const ENDS: [CutEnd; 3] = [CutEnd::Reset, CutEnd::Finish, CutEnd::Silence];

/// A whole answer, by which offsets are chosen.
struct ReferenceAnswer {
    head_bytes: usize,
    bytes: usize,
    is_chunked: bool,
    /// Whether the effects of this operation are counted.
    is_counted: bool,
}

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let Some(reference) = reference(examiner, log).await? else {
            return Ok(ProbeVerdict::inconclusive("an ordinary request had no success"));
        };
        let ReferenceAnswer { head_bytes, bytes, .. } = reference;
        let mut chance = examiner.chance(PROBE.id);
        let mut findings = TrialFindings::default();
        for end in ENDS {
            // The first byte, somewhere in the headers, somewhere in the body, and all but the last byte.
            let in_head = chance.usize(1..head_bytes.max(2));
            let in_body = chance.usize(head_bytes..bytes.max(head_bytes + 1));
            for offset in [1, in_head, in_body, bytes - 1] {
                if let Some(defects) = leave(examiner, log, &reference, (offset, end)).await? {
                    findings.add(defects);
                }
                if findings.is_decided() {
                    return Ok(findings.verdict(""));
                }
            }
        }
        Ok(findings.verdict("no answer came as far as where it was to be cut"))
    })
}

/// A fresh operation whose answer is large, if there is one: a small one is taken whole by the network.
fn fresh(examiner: &Examiner) -> Result<ExamRequest, ProbeInterruption> {
    let request = examiner.fresh()?;
    Ok(match &examiner.api().large_path {
        Some(path) => request.at(&path.replace("{marker}", &request.marker)),
        None => request,
    })
}

async fn reference(
    examiner: &Examiner,
    log: &ProbeLog,
) -> Result<Option<ReferenceAnswer>, ProbeInterruption> {
    let request = fresh(examiner)?;
    let addressed = examiner.addressed(0, &request);
    let sent = examiner.wire().send(log, "whole", addressed, Receiving::Ordinary).await;
    let Ok(sent) = sent else { return Ok(None) };
    let (whole, bytes) = sent.read_measured(log, examiner.patience()).await;
    let Some(answer) = whole.answer().filter(|answer| answer.is_success()) else {
        return Ok(None);
    };
    let is_counted = examiner.effects(log, &request.marker).await? == Some(1);
    Ok(Some(ReferenceAnswer {
        head_bytes: bytes.saturating_sub(answer.body.len()),
        bytes,
        is_chunked: answer.header("transfer-encoding").is_some(),
        is_counted,
    }))
}

/// Asks, leaves within the answer, and asks again; nothing if the answer did not come so far.
async fn leave(
    examiner: &Examiner,
    log: &ProbeLog,
    reference: &ReferenceAnswer,
    (bytes, end): (usize, CutEnd),
) -> Result<Option<Vec<Defect>>, ProbeInterruption> {
    let request = fresh(examiner)?;
    let addressed = examiner.addressed(0, &request);
    let sent = examiner.wire().send(log, "left", addressed, Receiving::Little).await;
    let Ok(sent) = sent else { return Ok(None) };
    let broken = sent.break_off(log, (bytes, end), examiner.patience()).await;
    let ExchangeEnd::BrokenOff { received } = &broken.exchange.end else { return Ok(None) };
    let has_come = received.len() == bytes;
    // The server must have seen that nobody reads on.
    examiner.rest().await;
    let retry = ask_settled(examiner, log, "retry", &request).await;
    let again = ask_settled(examiner, log, "again", &request).await;
    let effects = match reference.is_counted {
        true => examiner.effects(log, &request.marker).await?,
        false => None,
    };
    let mut defects = judge_duplicates(examiner, &[&retry, &again], effects);
    let after = format!("its client left after {bytes} bytes of the answer");
    defects.extend(judge_settled(examiner, &after, &retry));
    if !reference.is_chunked {
        defects.extend(judge_beginning(examiner, received, &broken.exchange, &retry));
    }
    Ok(((has_come && retry.succeeded()) || !defects.is_empty()).then_some(defects))
}

async fn ask_settled(
    examiner: &Examiner,
    log: &ProbeLog,
    label: &str,
    request: &ExamRequest,
) -> Exchange {
    examiner.ask_until_settled(log, label, request).await
}

/// Whether the retry heard what the answer that was cut had begun with.
fn judge_beginning(
    examiner: &Examiner,
    received: &[u8],
    cut: &Exchange,
    retry: &Exchange,
) -> Option<Defect> {
    let body_at = received.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let (body, replay) = (received.get(body_at..)?, retry.answer().filter(|one| one.is_success())?);
    let differs_at = match replay.body.get(..body.len()) {
        Some(beginning) if beginning == body => return None,
        Some(_) | None => {
            body.iter().zip(&replay.body).take_while(|(one, other)| one == other).count()
        }
    };
    // What is other in the name of the effect is another effect.
    let name = examiner.api().id.as_ref().and_then(|id| id.text(&replay.body));
    let name_at = name.as_ref().and_then(|name| {
        let mut found = replay.body.windows(name.len().max(1));
        found.position(|window| window == name.as_bytes())
    });
    let is_in_name = name_at
        .zip(name.as_ref())
        .is_some_and(|(at, name)| (at..at + name.len()).contains(&differs_at));
    let (class, sentence) = if is_in_name {
        (
            DefectClass::Safety,
            "a client left within the answer, and its retry was answered with another name of the effect"
                .to_owned(),
        )
    } else {
        (
            DefectClass::Contract,
            format!(
                "a client left within the answer, and its retry was answered with another body from byte {differs_at}"
            ),
        )
    };
    Some(Defect {
        class,
        sentence,
        advice: "keep the answer with its key before it is sent, whether or not it is taken",
        shown_by: vec![cut.number, retry.number],
    })
}
