//! The same content under two keys that a careless server takes for one.

use crate::{
    Defect, DefectClass, Examiner, Exchange, ProbeInterruption, ProbeLog,
    findings::ProbeFindings,
    judge::{AnswerLikeness, judge_crash, judge_refusal, told_apart, untold},
};

/// Two keys as they are written in their header, and what they have in common.
#[derive(Debug)]
pub(crate) struct KeyPair {
    /// In words: `two keys that differ in case alone`.
    pub(crate) alike: String,
    /// The one that a server may refuse.
    pub(crate) first: Vec<u8>,
    /// The other one.
    pub(crate) second: Vec<u8>,
}

/// What became of the first key of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstKey {
    /// It was acted on, and the second one was asked for.
    Accepted,
    /// It was refused, or ended badly: there is no pair.
    Refused,
}

impl KeyPair {
    /// Asks for the same content under both, which are two operations, as the controls have seen.
    pub(crate) async fn try_out(
        &self,
        examiner: &Examiner,
        log: &ProbeLog,
        findings: &mut ProbeFindings,
    ) -> Result<FirstKey, ProbeInterruption> {
        let request = examiner.fresh()?.with_key(self.first.as_slice());
        let first = examiner.ask(log, &format!("the first of {}", self.alike), &request).await;
        let Some(original) = first.answer().filter(|answer| answer.is_success()) else {
            let effects = examiner.effects(log, &request.marker).await?;
            let refusal = judge_refusal(&first, effects);
            let crash = judge_crash(&first, &format!("the first of {}", self.alike));
            match first.answer() {
                Some(answer) if matches!(answer.status, 429 | 503) => {
                    findings.unclear("the API wanted to be asked later");
                }
                Some(_) => findings.seen(refusal.into_iter().chain(crash)),
                None => log.note(format!("the first of {}: {}", self.alike, first.end.describe())),
            }
            return Ok(FirstKey::Refused);
        };
        let request = examiner.under_another_key(&request)?.with_key(self.second.as_slice());
        let second = examiner.ask(log, &format!("the second of {}", self.alike), &request).await;
        let effects = examiner.effects(log, &request.marker).await?;
        let (Some(answer), None) = (second.answer(), untold(&second)) else {
            findings.unclear(untold(&second).unwrap_or_default());
            return Ok(FirstKey::Accepted);
        };
        match told_apart(examiner, original, answer, effects) {
            _ if !answer.is_success() => findings.seen([self.refused(&first, &second)]),
            AnswerLikeness::SameEffect => findings.seen([self.collided(&first, &second)]),
            AnswerLikeness::OtherEffect => findings.seen(None),
            AnswerLikeness::Unclear => findings.unclear(format!(
                "{} were answered alike: have effects counted (`--count`), or say where an answer names its effect (`--id`)",
                self.alike
            )),
        }
        Ok(FirstKey::Accepted)
    }

    fn collided(&self, first: &Exchange, second: &Exchange) -> Defect {
        Defect {
            class: DefectClass::Safety,
            sentence: format!(
                "{} were taken for one: the second request was answered with {} and what the first one had been \
                 answered, and what it asked for was not done",
                self.alike,
                second.status().unwrap_or_default()
            ),
            advice: "compare keys byte by byte in their whole length, and refuse those that cannot be kept whole",
            shown_by: vec![first.number, second.number],
        }
    }

    /// A 5xx, or a refusal: the first one was acted on, so it is no matter of how they are written.
    fn refused(&self, first: &Exchange, second: &Exchange) -> Defect {
        let crash = judge_crash(second, &format!("the second of {}", self.alike));
        crash.unwrap_or_else(|| Defect {
            class: DefectClass::ContractHigh,
            sentence: format!(
                "of {} the first was acted on and the second, which nobody had used, was refused with {}",
                self.alike,
                second.status().unwrap_or_default()
            ),
            advice: "compare keys byte by byte in their whole length, and refuse those that cannot be kept whole",
            shown_by: vec![first.number, second.number],
        })
    }
}
