//! V05: a used key comes with another request.

use super::{Probe, ProbeFuture};
use crate::{
    BodyTemplate, Defect, DefectClass, ExamRequest, Examiner, Exchange, ProbeInterruption,
    ProbeLog,
    body::{OtherBody, changed_in_length, changed_in_place},
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{judge_crash, judge_duplicates, statuses, untold},
    profile::RefusalReason,
};

pub(super) const PROBE: Probe = Probe {
    id: "V05",
    name: "changed-body",
    question: "Is another request under a used key refused?",
    needs: &[],
    operations_max: 2 * (CHANGES_MAX + 1),
    run: |examiner, log| run(examiner, log),
};

type ChangedBodies = fn(&BodyTemplate, &ExamRequest) -> Vec<OtherBody>;

/// Most changes of one kind that are tried until one is valid by itself.
const CHANGES_MAX: u32 = 3;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let mut findings = ProbeFindings::default();
        // Some compare only how long bodies are.
        let kinds: [(&str, ChangedBodies); 2] =
            [("of the same length", changed_in_place), ("of another length", changed_in_length)];
        let template = &examiner.api().body;
        let sample = template.sample();
        let mut is_changeable = false;
        for (kind, changes) in kinds {
            let most = changes(template, &sample).len().min(CHANGES_MAX as usize);
            let mut is_judged = false;
            for at in 0..most {
                let change = |request: &ExamRequest| changes(template, request).into_iter().nth(at);
                is_judged = judge(examiner, log, &change, &mut findings).await?;
                if is_judged {
                    break;
                }
            }
            is_changeable |= most > 0;
            if most > 0 && !is_judged {
                findings.unclear(format!(
                    "no changed body {kind} is valid by itself: give one that differs in a value (`--changed-body`)"
                ));
            }
        }
        if !is_changeable {
            findings.unclear(
                "the body is neither JSON nor a form: give one that differs in a value (`--changed-body`)",
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
) -> Result<bool, ProbeInterruption> {
    let to_changed = |request: ExamRequest| match change(&request) {
        Some(other) => request.with_body(other.text),
        None => request,
    };
    if examiner.succeed(log, "changed, under its own key", to_changed).await?.is_none() {
        return Ok(false);
    }
    let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
        findings.unclear(NO_SUCCESS);
        return Ok(true);
    };
    let Some(other) = change(&first.request) else { return Ok(false) };
    let request = first.request.with_body(other.text);
    let second = examiner.ask(log, "a changed body under a used key", &request).await;
    let effects = examiner.effects(log, &first.request.marker).await?;
    if let Some(why) = untold(&second) {
        findings.unclear(why);
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
    let asked = "a changed body under a used key";
    defects.extend(examiner.judge_words(RefusalReason::Mismatch, second, asked));
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
