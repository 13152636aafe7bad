//! V08: somebody else comes with a key that is not theirs.

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Defect, DefectClass, Examiner, ProbeLog,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{AnswerLikeness, judge_crash, likeness},
};

pub(super) const PROBE: Probe = Probe {
    id: "V08",
    name: "other-principal",
    question: "Does a key tell nobody else what its owner was answered?",
    needs: &[ProbeNeed::OtherCredentials],
    operations_max: 6,
    run: |examiner, log| run(examiner, log),
};

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let Some(other) = &examiner.api().credentials.other else {
            return Ok(ProbeVerdict::inconclusive("nobody else's credentials are known"));
        };
        // A refusal says something only where somebody else may ask at all.
        let may_ask = examiner
            .succeed(log, "somebody else, their own key", |request| request.asked_by(other));
        if may_ask.await?.is_none() {
            return Ok(ProbeVerdict::inconclusive(
                "the other credentials may not ask for this operation: give some that may",
            ));
        }
        let Some(first) = examiner.succeed(log, "first", |request| request).await? else {
            return Ok(ProbeVerdict::inconclusive(NO_SUCCESS));
        };
        let mut findings = ProbeFindings::default();
        let request = first.request.asked_by(other);
        let second = examiner.ask(log, "somebody else, used key", &request).await;
        let Some(answer) = second.answer() else {
            return Ok(ProbeVerdict::inconclusive("somebody else was not answered"));
        };
        match likeness(examiner, &first.answer, answer) {
            AnswerLikeness::SameEffect => findings.seen([Defect {
                class: DefectClass::Safety,
                sentence: format!(
                    "somebody else came with a key that had been used and was answered with {} and what its \
                     owner had been answered: customers are told each other's data, and what they asked for is not done",
                    answer.status
                ),
                advice: "keep keys with whose they are, as the credentials say it",
                shown_by: vec![first.exchange.number, second.number],
            }]),
            AnswerLikeness::Unclear => findings.unclear(
                "everybody is answered alike: say where an answer names its effect (`--id`)",
            ),
            AnswerLikeness::OtherEffect => {
                log.note(match answer.status {
                    200..=299 => "everybody has keys of their own".to_owned(),
                    status => format!("a key of somebody else is refused with {status}"),
                });
                findings.seen(judge_crash(&second, "a key that somebody else had used"));
            }
        }
        Ok(findings.verdict())
    })
}
