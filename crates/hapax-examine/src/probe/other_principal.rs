//! V08: somebody else comes with a key that is not theirs.

use super::{Probe, ProbeFuture, ProbeNeed, ProbeVerdict};
use crate::{
    Defect, DefectClass, Examiner, Exchange, ProbeLog,
    findings::{NO_SUCCESS, ProbeFindings},
    judge::{AnswerLikeness, judge_crash, likeness, untold},
};

pub(super) const PROBE: Probe = Probe {
    id: "V08",
    name: "other-principal",
    question: "Does a key tell nobody else what its owner was answered?",
    needs: &[ProbeNeed::OtherCredentials],
    operations_max: 2 * TRIALS,
    run: |examiner, log| run(examiner, log),
};

/// Two customers whose effects are numbered may be given one number by chance, but not twice: each trial begins with
/// one more of the other customer's.
const TRIALS: u32 = 2;

fn run<'a>(examiner: &'a Examiner, log: &'a ProbeLog) -> ProbeFuture<'a> {
    Box::pin(async move {
        let Some(other) = &examiner.api().credentials.other else {
            return Ok(ProbeVerdict::inconclusive("nobody else's credentials are known"));
        };
        let mut findings = ProbeFindings::default();
        let mut told = None;
        for _ in 0..TRIALS {
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
            let request = first.request.asked_by(other);
            let second = examiner.ask(log, "somebody else's used key", &request).await;
            let (Some(answer), None) = (second.answer(), untold(&second)) else {
                findings.unclear(untold(&second).unwrap_or_default());
                return Ok(findings.verdict());
            };
            match likeness(examiner, &first.answer, answer) {
                AnswerLikeness::SameEffect => told = Some(leaked(&first.exchange, &second)),
                AnswerLikeness::OtherEffect => {
                    log.note(match answer.status {
                        200..=299 => "everybody has keys of their own".to_owned(),
                        status => format!("a key of somebody else is refused with {status}"),
                    });
                    findings.seen(judge_crash(&second, "a key that somebody else had used"));
                    return Ok(findings.verdict());
                }
                AnswerLikeness::Unclear => {
                    findings.unclear(
                        "everybody is answered alike: say where an answer names its effect (`--id`)",
                    );
                    return Ok(findings.verdict());
                }
            }
        }
        findings.seen(told);
        Ok(findings.verdict())
    })
}

fn leaked(first: &Exchange, second: &Exchange) -> Defect {
    Defect {
        class: DefectClass::Safety,
        sentence: format!(
            "somebody else came with a key that had been used and was answered with {} and what its owner had \
             been answered: customers are told each other's data, and what they asked for is not done",
            second.status().unwrap_or_default()
        ),
        advice: "keep keys with whose they are, as the credentials say it",
        shown_by: vec![first.number, second.number],
    }
}
