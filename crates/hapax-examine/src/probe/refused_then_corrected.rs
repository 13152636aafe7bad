//! V17: a request is refused for its content, and comes corrected with the same key.

use std::time::Duration;

use super::{Probe, ProbeFuture};
use crate::{
    Defect, DefectClass, ExamRequest, Examiner, Exchange, ProbeInterruption, ProbeLog,
    body::refusable,
    findings::ProbeFindings,
    judge::{judge_crash, judge_duplicates, judge_refusal},
};

pub(super) const PROBE: Probe = Probe {
    id: "V17",
    name: "refused-then-corrected",
    question: "After a refusal: is the corrected request under the same key treated alike each time?",
    needs: &[],
    operations_max: 5,
    run: |examiner, log| run(examiner, log),
};

/// Most bodies that are tried until one is refused.
const BODIES_MAX: usize = 4;

/// A request that was refused, and which of the invalid bodies it had.
#[derive(Debug)]
struct RefusedOperation {
    request: ExamRequest,
    refusal: Exchange,
    body: usize,
}

/// What the corrected request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CorrectedEnd {
    /// It was done: the key was free.
    Done,
    /// It was refused: the key is kept with the refusal.
    Refused,
    /// It is told to come back for ever.
    Stuck,
    /// A 5xx, or no answer.
    Unclear,
}

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = ProbeFindings::default();
        let Some(refused) = find_refusal(examiner, log).await? else {
            findings.unclear(
                "no invalid body was refused with a 4xx: give one that is (`--invalid-body`)",
            );
            return Ok(findings.verdict());
        };
        let body = refused.body;
        let once = correct(examiner, log, &refused, &mut findings).await?;
        let Some(refused) = refuse(examiner, log, body).await? else {
            findings.unclear("the same invalid body was refused at times only");
            return Ok(findings.verdict());
        };
        let twice = correct(examiner, log, &refused, &mut findings).await?;
        let is_seen = |end| matches!(end, CorrectedEnd::Done | CorrectedEnd::Refused);
        if once != twice && is_seen(once) && is_seen(twice) {
            findings.seen([Defect {
                class: DefectClass::Contract,
                sentence: "after a refusal, the corrected request under the same key was done at one time \
                           and refused at another: clients cannot know whether they need a new key"
                    .to_owned(),
                advice: "let a refusal free its key each time, or keep it each time",
                shown_by: vec![refused.refusal.number],
            }]);
        }
        Ok(findings.verdict())
    })
}

/// The first of the invalid bodies that is refused.
async fn find_refusal(
    examiner: &Examiner,
    log: &ProbeLog,
) -> Result<Option<RefusedOperation>, ProbeInterruption> {
    let template = &examiner.api().body;
    for body in 0..refusable(template, &template.sample()).len().min(BODIES_MAX) {
        if let Some(refused) = refuse(examiner, log, body).await? {
            return Ok(Some(refused));
        }
    }
    Ok(None)
}

/// Asks for a fresh operation with this invalid body; nothing if there is none, or it is not refused.
async fn refuse(
    examiner: &Examiner,
    log: &ProbeLog,
    body: usize,
) -> Result<Option<RefusedOperation>, ProbeInterruption> {
    let request = examiner.fresh()?;
    let bodies = refusable(&examiner.api().body, &request);
    let Some(invalid) = bodies.into_iter().nth(body) else { return Ok(None) };
    let asked = request.with_body(invalid.text);
    let refusal = examiner.ask(log, &format!("invalid: {}", invalid.what), &asked).await;
    let answer = refusal.answer();
    let is_refused = answer.is_some_and(|one| one.is_refusal() && !examiner.comes_back(one));
    Ok(is_refused.then_some(RefusedOperation { request, refusal, body }))
}

/// Asks for what was refused with its valid body, until that is settled, and judges what came of it.
async fn correct(
    examiner: &Examiner,
    log: &ProbeLog,
    refused: &RefusedOperation,
    findings: &mut ProbeFindings,
) -> Result<CorrectedEnd, ProbeInterruption> {
    let RefusedOperation { request, refusal, .. } = refused;
    let corrected = examiner.ask_until_settled(log, "corrected", request).await;
    let effects = examiner.effects(log, &request.marker).await?;
    let Some(answer) = corrected.answer() else {
        findings.unclear("the corrected request was not answered");
        return Ok(CorrectedEnd::Unclear);
    };
    let end = match answer.status {
        200..=299 => CorrectedEnd::Done,
        429 | 503 => {
            findings.unclear("the API wanted to be asked later");
            return Ok(CorrectedEnd::Unclear);
        }
        409 | 425 => CorrectedEnd::Stuck,
        400..=499 => CorrectedEnd::Refused,
        _ => CorrectedEnd::Unclear,
    };
    log.note(match end {
        CorrectedEnd::Done => "a refusal frees its key".to_owned(),
        CorrectedEnd::Refused | CorrectedEnd::Stuck | CorrectedEnd::Unclear => {
            format!("a refusal keeps its key: the corrected request hears {}", answer.status)
        }
    });
    let mut defects = judge_duplicates(examiner, &[&corrected], effects);
    defects.extend(judge_refusal(&corrected, effects));
    defects.extend(judge_crash(&corrected, "a corrected request under the key of a refused one"));
    let declared = examiner.examination().declared.refusals_kept;
    let waited = examiner.examination().bounds.recovery;
    defects.extend(judge_end(end, declared, waited, [refusal, &corrected]));
    findings.seen(defects);
    Ok(end)
}

fn judge_end(
    end: CorrectedEnd,
    declared: Option<bool>,
    waited: Duration,
    [refusal, corrected]: [&Exchange; 2],
) -> Option<Defect> {
    let (was, is) = (refusal.status().unwrap_or_default(), corrected.status().unwrap_or_default());
    let (class, sentence, advice) = match (end, declared) {
        (CorrectedEnd::Stuck, None | Some(false)) => (
            DefectClass::Liveness,
            format!(
                "a request was refused with {was}, and its corrected retry with the same key is still told to come \
                 back ({is}) after {waited:.0?}: the key is stuck, and the client waits for nothing"
            ),
            "look at the body before the key is taken, or free the key when the request is refused",
        ),
        (CorrectedEnd::Refused, Some(false)) => (
            DefectClass::Contract,
            format!(
                "a request was refused with {was}, and its corrected retry with the same key with {is}, \
                 though keys of refused requests are said to stay free: what the client asks for is never done"
            ),
            "look at the body before the key is taken, or free the key when the request is refused",
        ),
        (CorrectedEnd::Done, Some(true)) => (
            DefectClass::Contract,
            format!(
                "a request was refused with {was}, and its corrected retry with the same key was done ({is}), \
                 though refusals are said to be kept"
            ),
            "keep refusals with their keys, or say that they are not kept",
        ),
        (CorrectedEnd::Done, None | Some(false))
        | (CorrectedEnd::Refused, None | Some(true))
        | (CorrectedEnd::Stuck, Some(true))
        | (CorrectedEnd::Unclear, _) => return None,
    };
    Some(Defect { class, sentence, advice, shown_by: vec![refusal.number, corrected.number] })
}
