//! What duplicates may hear that were at work at the same time, and what many trials of that come to.

use crate::{
    Defect, DefectClass, Examiner, Exchange, ExchangeEnd, ProbeVerdict, RawAnswer,
    judge::judge_duplicates, profile::RefusalReason,
};

/// What the trials of one probe have shown so far.
#[derive(Debug, Default)]
pub(crate) struct TrialFindings {
    trials: u32,
    defects: Vec<Defect>,
}

impl TrialFindings {
    /// One more trial, with what was wrong in it; how many defects are new.
    pub(crate) fn add(&mut self, defects: Vec<Defect>) -> usize {
        self.trials += 1;
        let before = self.defects.len();
        for defect in defects {
            let is_known =
                |known: &Defect| (known.class, known.advice) == (defect.class, defect.advice);
            if !self.defects.iter().any(is_known) {
                self.defects.push(defect);
            }
        }
        self.defects.len() - before
    }

    /// So many trials showed something.
    pub(crate) fn trials(&self) -> u32 {
        self.trials
    }

    /// Whether the worst is known.
    pub(crate) fn is_decided(&self) -> bool {
        self.defects.iter().any(|defect| defect.class == DefectClass::Safety)
    }

    /// Whether nothing is wrong so far.
    pub(crate) fn is_sound(&self) -> bool {
        self.defects.is_empty()
    }

    /// These if anything is wrong, none otherwise: where too little was tried for nothing to be wrong.
    pub(crate) fn unless_sound(self) -> Self {
        if self.defects.is_empty() { Self::default() } else { self }
    }

    /// What they come to; this if none of them showed anything.
    pub(crate) fn verdict(self, otherwise: &str) -> ProbeVerdict {
        if self.trials == 0 {
            return ProbeVerdict::inconclusive(otherwise);
        }
        ProbeVerdict::of(self.trials, self.defects)
    }
}

/// Whether at least two of these were with the server at the same time, as far as we can see.
pub(crate) fn is_overlap(exchanges: &[&Exchange]) -> bool {
    let mut spans: Vec<_> = exchanges
        .iter()
        .filter_map(|one| Some((one.sent?, one.answered.unwrap_or(one.ended))))
        .collect();
    spans.sort();
    let mut latest = None;
    spans.into_iter().any(|(sent, answered)| {
        let is_within = latest.is_some_and(|latest| sent < latest);
        latest = latest.max(Some(answered));
        is_within
    })
}

/// What is wrong, if duplicates of which some were at work at once heard this, and had so many effects.
///
/// Beside what [`judge_duplicates`] sees: failures, refusals, successes that are not the same, and 409 without a time.
pub(crate) fn judge_overlapping(
    examiner: &Examiner,
    exchanges: &[&Exchange],
    effects: Option<u64>,
) -> Vec<Defect> {
    let mut defects = judge_duplicates(examiner, exchanges, effects);
    let expected = examiner.learned().success_status;
    let winner = exchanges.iter().filter_map(|one| Some((one, one.answer()?)));
    let winner = winner.filter(|(_, answer)| answer.is_success());
    // The fullest is the real one, where they are not the same.
    let winner = winner.max_by_key(|(one, answer)| {
        (answer.status == expected, !answer.body.is_empty(), u32::MAX - one.number)
    });
    let Some((winner, success)) = winner else { return defects };
    let is_twice = defects.iter().any(|defect| defect.class == DefectClass::Safety);
    let mut other = Vec::new();
    for exchange in exchanges {
        let Some(answer) = exchange.answer() else { continue };
        let (class, sentence, advice) = match answer.status {
            200..=299
                if is_twice || (answer.status, &answer.body) == (success.status, &success.body) =>
            {
                continue;
            }
            200..=299 => (
                DefectClass::ContractHigh,
                format!(
                    "a duplicate was answered {} with {} bytes where another one was answered {} with {} others: \
                     its client takes that for the answer",
                    answer.status,
                    answer.body.len(),
                    success.status,
                    success.body.len()
                ),
                "answer duplicates with the stored answer, or with 409 while there is none",
            ),
            500..=599 if answer.status != 503 => (
                DefectClass::ContractHigh,
                format!(
                    "a duplicate was answered {} while another one was answered {}",
                    answer.status, success.status
                ),
                "let whoever does not get the key wait, or hear 409 with Retry-After",
            ),
            409 if !says_when(examiner, answer) => (
                DefectClass::Hygiene,
                "a duplicate was answered 409 and not told when to come again".to_owned(),
                "send Retry-After with 409",
            ),
            // 423 says the same as 409.
            400..=499 if !examiner.comes_back(answer) && answer.status != 423 => (
                DefectClass::Contract,
                format!(
                    "a duplicate was refused with {} while another one was answered {}: its client gives up",
                    answer.status, success.status
                ),
                "answer duplicates with the stored answer, or with 409 while there is none",
            ),
            _ => continue,
        };
        other.push(Defect {
            class,
            sentence,
            advice,
            shown_by: vec![winner.number, exchange.number],
        });
    }
    other.extend(judge_in_flight(examiner, exchanges));
    // One of each kind is enough.
    let mut known = Vec::new();
    other.retain(|defect| {
        let kind = (defect.class, defect.advice);
        let is_new = !known.contains(&kind);
        known.push(kind);
        is_new
    });
    defects.extend(other);
    defects
}

/// Those who were told that the first is at work in other words than the vendor's.
fn judge_in_flight(examiner: &Examiner, exchanges: &[&Exchange]) -> Vec<Defect> {
    let told = exchanges.iter().filter(|exchange| {
        // A 429 or a 503 may be about something else.
        exchange.answer().is_some_and(|answer| matches!(answer.status, 409 | 423 | 425))
    });
    let judge = |exchange: &&&Exchange| {
        examiner.judge_words(RefusalReason::InFlight, exchange, "a duplicate that came meanwhile")
    };
    told.filter_map(|exchange| judge(&exchange)).collect()
}

/// Whether a refusal says when, or that, it is worth to come again.
fn says_when(examiner: &Examiner, answer: &RawAnswer) -> bool {
    let own = examiner.examination().declared.refusals.map_or("", |vendor| vendor.retry_header);
    answer.header("retry-after").is_some()
        || (!own.is_empty() && answer.header(own).is_some_and(|value| value.trim() == "true"))
}

/// What is wrong with the last of several retries, which was asked until it was settled: `after` says what had happened
/// to the request before.
pub(crate) fn judge_settled(examiner: &Examiner, after: &str, last: &Exchange) -> Option<Defect> {
    let recovery = examiner.examination().bounds.recovery.as_secs();
    let advice = "let a key be taken over, or freed, when whoever has it is gone";
    if matches!(last.end, ExchangeEnd::Silent { .. }) {
        return Some(Defect {
            class: DefectClass::Liveness,
            sentence: format!("{recovery} s after {after}, its retry was still not answered"),
            advice,
            shown_by: vec![last.number],
        });
    }
    let answer = last.answer().filter(|answer| !answer.is_success())?;
    let (class, sentence, advice) = if examiner.comes_back(answer) {
        (
            DefectClass::Liveness,
            format!(
                "{recovery} s after {after}, its key was still answered with {}",
                answer.status
            ),
            advice,
        )
    } else if answer.is_refusal() {
        (
            DefectClass::Liveness,
            format!("after {after}, its retry was refused with {}: the key is lost", answer.status),
            "keep nothing under a key before its request was read whole and taken",
        )
    } else {
        (
            DefectClass::ContractHigh,
            format!("after {after}, its retry was answered with {}", answer.status),
            "let a retry be executed, or answered with what is stored",
        )
    };
    Some(Defect { class, sentence, advice, shown_by: vec![last.number] })
}
