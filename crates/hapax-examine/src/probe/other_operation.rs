//! V07: a key of one operation comes with another.

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Defect, DefectClass, ExamRequest, Examiner, Exchange, ProbeLog,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{AnswerLikeness, judge_crash, likeness, untold},
};

pub(super) const PROBE: Probe = Probe {
    id: "V07",
    name: "other-operation",
    question: "Is a key of one operation free, or refused, on another?",
    needs: &[ProbeNeed::OtherPath],
    operations_max: 2 * TRIALS,
    run: |examiner, log| run(examiner, log),
};

/// Two operations that number their effects may give one number by chance, but not twice: each trial begins with one
/// more of the other operation.
const TRIALS: u32 = 2;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let Some(other_path) = &examiner.api().other_path else {
            return Ok(ProbeVerdict::inconclusive("there is no other operation"));
        };
        let there =
            |request: ExamRequest| request.at(&other_path.replace("{marker}", &request.marker));
        let mut findings = ProbeFindings::default();
        let mut confused = None;
        for _ in 0..TRIALS {
            // A refusal says something only where the other operation would have been done.
            if examiner.succeed(log, "other operation, its own key", there).await?.is_none() {
                return Ok(ProbeVerdict::inconclusive(format!(
                    "{other_path} does not take the same request, so nothing can be told by it"
                )));
            }
            let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
                return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
            };
            let request = there(first.request.clone());
            let second = examiner.ask(log, "a used key on another operation", &request).await;
            let (Some(answer), None) = (second.answer(), untold(&second)) else {
                findings.unclear(untold(&second).unwrap_or_default());
                return Ok(findings.verdict());
            };
            if !answer.is_success() {
                log.note(format!("a key of another operation is refused with {}", answer.status));
                findings.seen(judge_crash(&second, "a used key on another operation"));
                return Ok(findings.verdict());
            }
            match likeness(examiner, &first.answer, answer) {
                AnswerLikeness::SameEffect => {
                    confused = Some(blind(examiner, &first.exchange, &second));
                }
                AnswerLikeness::OtherEffect => {
                    log.note("each operation has keys of its own");
                    findings.seen(None);
                    return Ok(findings.verdict());
                }
                AnswerLikeness::Unclear => {
                    findings.unclear(
                        "both operations are answered alike: say where an answer names its effect (`--id`)",
                    );
                    return Ok(findings.verdict());
                }
            }
        }
        findings.seen(confused);
        Ok(findings.verdict())
    })
}

fn blind(examiner: &Examiner, first: &Exchange, second: &Exchange) -> Defect {
    let api = examiner.api();
    Defect {
        class: DefectClass::ContractHigh,
        sentence: format!(
            "a key of {} was sent to {} and answered with {} and what {} had been answered with: \
             the client believes that the other operation was done, and it was not",
            api.path,
            api.other_path.as_deref().unwrap_or_default(),
            second.status().unwrap_or_default(),
            api.path
        ),
        advice: "keep keys with the operation that they were for: its method and its path",
        shown_by: vec![first.number, second.number],
    }
}
