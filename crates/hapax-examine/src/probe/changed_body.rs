//! V05: a used key comes with another request.

use super::{Probe, ProbeFuture};
use crate::{
    BodyTemplate, Defect, DefectClass, ExamRequest, Examiner, Exchange, Interruption, ProbeLog,
    body::{OtherBody, changed_in_length, changed_in_place},
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{judge_crash, judge_duplicates, statuses},
};

pub(super) const PROBE: Probe = Probe {
    id: "V05",
    name: "changed-body",
    question: "Is another request under a used key refused?",
    needs: &[],
    operations_max: 12,
    run: |examiner, log| run(examiner, log),
};

type ChangedBodies = fn(&BodyTemplate, &ExamRequest) -> Vec<OtherBody>;

/// Most changes of one kind that are tried until one is valid by itself.
const CHANGES_MAX: usize = 3;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = ProbeFindings::default();
        // Some compare only how long bodies are.
        let kinds: [(&str, ChangedBodies); 2] =
            [("of the same length", changed_in_place), ("of another length", changed_in_length)];
        let mut is_changeable = false;
        for (kind, changes) in kinds {
            let template = &examiner.api().body;
            let sample = examiner.fresh()?;
            let count = changes(template, &sample).len().min(CHANGES_MAX);
            is_changeable |= count > 0;
            let mut is_judged = false;
            for at in 0..count {
                let change = |request: &ExamRequest| changes(template, request).into_iter().nth(at);
                is_judged = judge(examiner, log, &change, &mut findings).await?;
                if is_judged {
                    break;
                }
            }
            if count > 0 && !is_judged {
                findings.unclear(format!(
                    "no changed body {kind} is valid by itself: give one that differs in a value (`--changed-body`)"
                ));
            }
        }
        if !is_changeable {
            findings.unclear(
                "the body is no JSON: give one that differs in a value (`--changed-body`)",
            );
        }
        Ok(findings.verdict())
    })
}

/// Whether the change could be judged: it must be a request that has success under a key of its own.
async fn judge(
    examiner: &Examiner,
    log: &ProbeLog,
    change: &impl Fn(&ExamRequest) -> Option<OtherBody>,
    findings: &mut ProbeFindings,
) -> Result<bool, Interruption> {
    let alone = examiner.fresh()?;
    let Some(other) = change(&alone) else { return Ok(false) };
    let alone = alone.with_body(other.text);
    if !examiner.ask(log, "changed, under its own key", &alone).await.succeeded() {
        return Ok(false);
    }
    let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
        findings.unclear(NO_SUCCESS);
        return Ok(true);
    };
    let Some(other) = change(&first.request) else { return Ok(false) };
    let request = first.request.with_body(other.text);
    let second = examiner.ask(log, "changed, under the used key", &request).await;
    let effects = examiner.effects(log, &first.request.marker).await?;
    if second.answer().is_none() {
        findings.unclear(format!("the changed body was not answered: {}", second.end.describe()));
        return Ok(true);
    }
    findings.seen(judge_second(examiner, &first.exchange, &second, effects, &other.what));
    Ok(true)
}

fn judge_second(
    examiner: &Examiner,
    first: &Exchange,
    second: &Exchange,
    effects: Option<u64>,
    what: &str,
) -> Vec<Defect> {
    let mut defects = judge_duplicates(examiner, &[first, second], effects);
    defects.extend(judge_crash(second, &format!("a changed body ({what}) under a used key")));
    if defects.is_empty() && second.succeeded() {
        defects.push(Defect {
            class: DefectClass::ContractHigh,
            sentence: format!(
                "a used key came with a changed body ({what}) and was answered with {}, as the first was: \
                 the client believes that the changed request was done, and it was not",
                statuses(&[second])
            ),
            advice: "keep a digest of the request with its key, and refuse another request with 422",
            shown_by: vec![first.number, second.number],
        });
    }
    defects
}
