//! What an answer means for its operation: the one table of HTTP statuses, for every way an answer
//! comes in.

use hapax_core::{AnswerMeaning, Outcome, Recovery};
use hapax_engine::operator::Resolution;
use http::{HeaderMap, StatusCode, header::RETRY_AFTER, response::Parts};

use crate::server::{
    calls::judged_status,
    execution::inner_answer::{InnerAnswer, worth},
};

/// What a result means. See the table in `docs/states.md`.
///
/// ```
/// use hapax_tower::{Protection, ResultPolicy};
///
/// // An order that was refused may be corrected and sent again under its key.
/// let protection = Protection { results: ResultPolicy::SuccessOnly, ..Protection::default() };
/// assert_eq!(protection.results.as_str(), "success-only");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultPolicy {
    /// Final answers and deterministic client errors are stored; server errors free the key where
    /// nobody can find out, and are found out about elsewhere.
    Terminal,
    /// Everything is stored once execution began, server errors included.
    Stripe,
    /// Only success is stored; every other answer frees the key.
    SuccessOnly,
    /// Whatever happened is stored, unknown results included: never a second attempt.
    AtMostOnce,
}

impl ResultPolicy {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Terminal, Self::Stripe, Self::SuccessOnly, Self::AtMostOnce];

    /// The name used in configuration and in the published policy.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Stripe => "stripe",
            Self::SuccessOnly => "success-only",
            Self::AtMostOnce => "at-most-once",
        }
    }
}

/// What a complete answer means: by the words of an inner Hapax, or by its status.
pub(crate) fn meaning(
    status: StatusCode,
    headers: &HeaderMap,
    results: ResultPolicy,
    recovery: Recovery,
) -> AnswerMeaning {
    let (worth, status) = (worth(status, headers), status.as_u16());
    match (worth, recovery, results) {
        (InnerAnswer::NothingRan, _, _) => AnswerMeaning::NotDone,
        // It is known by its key further in: whoever asks again is told there, and runs nothing twice.
        (InnerAnswer::Unknown, Recovery::Hold, _) => AnswerMeaning::NotDone,
        (InnerAnswer::Unknown, Recovery::Resend | Recovery::Probe, ResultPolicy::AtMostOnce) => {
            kept(status)
        }
        (InnerAnswer::Unknown, Recovery::Resend | Recovery::Probe, _) => {
            AnswerMeaning::Inconclusive
        }
        (InnerAnswer::Outcome, _, _) => {
            if status == 409 && results == ResultPolicy::Stripe && asks_back(headers) {
                return AnswerMeaning::NotDone;
            }
            of_status(status, headers.contains_key(RETRY_AFTER), results, recovery)
        }
    }
}

/// Whether Stripe says of a conflict that it will pass: something else is at work, and nothing was
/// kept.
fn asks_back(headers: &HeaderMap) -> bool {
    headers.get("stripe-should-retry").is_some_and(|value| value == "true")
}

/// What a status means. `asks_to_wait`: the answer says when to come back (`Retry-After`).
fn of_status(
    status: u16,
    asks_to_wait: bool,
    results: ResultPolicy,
    recovery: Recovery,
) -> AnswerMeaning {
    match (status, results) {
        (425, _) => AnswerMeaning::NotDone,
        (503, _) if asks_to_wait => AnswerMeaning::NotDone,
        (_, ResultPolicy::AtMostOnce) | (200..300, _) => kept(status),
        (401 | 403 | 408 | 413 | 429, _) => AnswerMeaning::NotDone,
        (_, ResultPolicy::Stripe) | (..500, ResultPolicy::Terminal) => kept(status),
        (..500, ResultPolicy::SuccessOnly) => AnswerMeaning::NotDone,
        (502 | 504 | 520..=527 | 600.., _) => AnswerMeaning::Inconclusive,
        (500.., _) => match recovery {
            Recovery::Resend | Recovery::Probe => AnswerMeaning::Inconclusive,
            Recovery::Hold => AnswerMeaning::TakenForNotDone,
        },
    }
}

/// What a status means that is kept, whatever the policy makes of it.
pub(crate) fn kept(status: u16) -> AnswerMeaning {
    match status {
        ..400 => AnswerMeaning::Completed,
        400.. => AnswerMeaning::Failed,
    }
}

/// What the answer to an operation means whose client was told that it will be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It was not done yet: it is tried again.
    Again,
    /// It ends with this.
    Ends(AnswerMeaning),
}

/// Reads an answer to an accepted operation, which is never given back: there is nobody who would
/// ask for it again.
pub(crate) fn accepted(status: u16, meaning: AnswerMeaning) -> Accepted {
    match (meaning, status) {
        (AnswerMeaning::Completed | AnswerMeaning::Failed | AnswerMeaning::Inconclusive, _) => {
            Accepted::Ends(meaning)
        }
        // 502 and 504 are not done only if somebody further in says so, who knows the key.
        (
            AnswerMeaning::NotDone | AnswerMeaning::TakenForNotDone,
            408 | 409 | 425 | 429 | 502..=504,
        ) => Accepted::Again,
        // It was refused, and asking again would not help.
        (AnswerMeaning::NotDone, _) => Accepted::Ends(kept(status)),
        // Nobody knows whether it was done, and nobody is there who could decide to ask again.
        (AnswerMeaning::TakenForNotDone, _) => Accepted::Ends(AnswerMeaning::Inconclusive),
    }
}

/// Whether the answer to a repeated request says nothing about the first one: that is still at work,
/// it is too much now, or the credential that was good then is gone.
pub(crate) fn is_not_now(parts: &Parts) -> bool {
    let status = judged_status(parts);
    matches!(status.as_u16(), 401 | 403 | 408 | 409 | 425 | 429 | 503)
        || worth(status, &parts.headers) != InnerAnswer::Outcome
}

/// It happened, and this is what a person found that it answered: a status from 200 to 399.
///
/// ```
/// use hapax_core::Outcome;
///
/// assert!(hapax_tower::resolved_as_completed(Outcome::bare(201)).is_ok());
/// assert!(hapax_tower::resolved_as_completed(Outcome::bare(402)).is_err());
/// ```
pub fn resolved_as_completed(outcome: Outcome) -> Result<Resolution, InvalidResolution> {
    match outcome.status() {
        status @ 200..=599 if kept(status) == AnswerMeaning::Completed => {
            Ok(Resolution::Completed { outcome })
        }
        status => Err(InvalidResolution::NotOfCompleted { status }),
    }
}

/// It failed for good, and this is what a person found that it answered: a status from 400 to 599.
///
/// ```
/// use hapax_core::Outcome;
///
/// assert!(hapax_tower::resolved_as_failed(Outcome::bare(402)).is_ok());
/// assert!(hapax_tower::resolved_as_failed(Outcome::bare(201)).is_err());
/// ```
pub fn resolved_as_failed(outcome: Outcome) -> Result<Resolution, InvalidResolution> {
    match outcome.status() {
        status @ 200..=599 if kept(status) == AnswerMeaning::Failed => {
            Ok(Resolution::Failed { outcome })
        }
        status => Err(InvalidResolution::NotOfFailed { status }),
    }
}

/// Why an answer cannot be that of a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResolution {
    /// Clients would take it for a failure, or for no answer at all.
    #[error("the status of what completed is between 200 and 399, not {status}")]
    NotOfCompleted {
        /// The status that was given.
        status: u16,
    },
    /// Clients would take it for a success, or for no answer at all.
    #[error("the status of what failed is between 400 and 599, not {status}")]
    NotOfFailed {
        /// The status that was given.
        status: u16,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Site};

    const RECOVERIES: [Recovery; 3] = [Recovery::Resend, Recovery::Probe, Recovery::Hold];

    /// A cell of a table whose columns are those of [`ResultPolicy::ALL`].
    fn named(letter: char) -> AnswerMeaning {
        match letter {
            'c' => AnswerMeaning::Completed,
            'f' => AnswerMeaning::Failed,
            'n' => AnswerMeaning::NotDone,
            'r' => AnswerMeaning::TakenForNotDone,
            'd' => AnswerMeaning::Inconclusive,
            _ => unreachable!("no cell has the letter {letter}"),
        }
    }

    #[test]
    fn policies_are_known_by_their_published_names() {
        let names = ResultPolicy::ALL.map(ResultPolicy::as_str);
        assert_eq!(names, ["terminal", "stripe", "success-only", "at-most-once"]);
    }

    #[test]
    fn every_status_means_under_every_policy_what_the_table_says() {
        let table = [
            (100, "ccnc"),
            (199, "ccnc"),
            (200, "cccc"),
            (204, "cccc"),
            (299, "cccc"),
            (300, "ccnc"),
            (304, "ccnc"),
            (399, "ccnc"),
            (400, "ffnf"),
            (401, "nnnf"),
            (402, "ffnf"),
            (403, "nnnf"),
            (404, "ffnf"),
            (407, "ffnf"),
            (408, "nnnf"),
            (409, "ffnf"),
            (412, "ffnf"),
            (413, "nnnf"),
            (414, "ffnf"),
            (422, "ffnf"),
            (424, "ffnf"),
            (425, "nnnn"),
            (426, "ffnf"),
            (428, "ffnf"),
            (429, "nnnf"),
            (430, "ffnf"),
            (499, "ffnf"),
            (500, "rfrf"),
            (501, "rfrf"),
            (502, "dfdf"),
            (503, "rfrf"),
            (504, "dfdf"),
            (505, "rfrf"),
            (519, "rfrf"),
            (520, "dfdf"),
            (527, "dfdf"),
            (528, "rfrf"),
            (599, "rfrf"),
            (600, "dfdf"),
            (u16::MAX, "dfdf"),
        ];
        for (status, row) in table {
            for (results, letter) in ResultPolicy::ALL.into_iter().zip(row.chars()) {
                let found = of_status(status, false, results, Recovery::Hold);
                assert_eq!(found, named(letter), "{status} under {results:?}");
            }
        }
    }

    #[test]
    fn a_server_error_is_found_out_about_where_that_is_possible() {
        for recovery in [Recovery::Resend, Recovery::Probe] {
            for results in [ResultPolicy::Terminal, ResultPolicy::SuccessOnly] {
                for status in [500, 501, 502, 503, 504, 599, 600] {
                    let found = of_status(status, false, results, recovery);
                    let expected = AnswerMeaning::Inconclusive;
                    assert_eq!(found, expected, "{status} under {recovery:?}, {results:?}");
                }
            }
        }
    }

    #[test]
    fn an_answer_that_asks_to_wait_means_that_nothing_was_done() {
        for results in ResultPolicy::ALL {
            for recovery in RECOVERIES {
                for (status, expected) in [
                    (503, AnswerMeaning::NotDone),
                    (425, AnswerMeaning::NotDone),
                    (200, AnswerMeaning::Completed),
                ] {
                    assert_eq!(of_status(status, true, results, recovery), expected, "{status}");
                }
            }
        }
    }

    #[test]
    fn the_words_of_an_inner_hapax_come_before_its_status() {
        let cases = [
            (Code::KeyInFlight, Recovery::Hold, "nnnn"),
            (Code::OutcomeInDoubt, Recovery::Resend, "nnnn"),
            (Code::Overloaded, Recovery::Probe, "nnnn"),
            (Code::ExecutionTimedOut, Recovery::Hold, "nnnn"),
            (Code::ExecutionUnanswered, Recovery::Resend, "dddf"),
            (Code::OutcomeNotRecorded, Recovery::Probe, "dddf"),
            (Code::KeyReused, Recovery::Hold, "ffnf"),
            (Code::ExecutionPanicked, Recovery::Hold, "rfrf"),
        ];
        for (code, recovery, row) in cases {
            let (parts, _) = code.answer("Some detail.", &Site::default()).into_parts();
            for (results, letter) in ResultPolicy::ALL.into_iter().zip(row.chars()) {
                let found = meaning(parts.status, &parts.headers, results, recovery);
                assert_eq!(found, named(letter), "{code:?} under {results:?}");
            }
        }
    }

    #[test]
    fn what_was_accepted_is_tried_again_or_ends_and_is_never_given_back() {
        let cases = [
            (429, AnswerMeaning::NotDone, Accepted::Again),
            (408, AnswerMeaning::NotDone, Accepted::Again),
            (425, AnswerMeaning::NotDone, Accepted::Again),
            (503, AnswerMeaning::NotDone, Accepted::Again),
            (503, AnswerMeaning::TakenForNotDone, Accepted::Again),
            (409, AnswerMeaning::NotDone, Accepted::Again),
            (504, AnswerMeaning::NotDone, Accepted::Again),
            (500, AnswerMeaning::TakenForNotDone, Accepted::Ends(AnswerMeaning::Inconclusive)),
            (401, AnswerMeaning::NotDone, Accepted::Ends(AnswerMeaning::Failed)),
            (403, AnswerMeaning::NotDone, Accepted::Ends(AnswerMeaning::Failed)),
            (413, AnswerMeaning::NotDone, Accepted::Ends(AnswerMeaning::Failed)),
            (201, AnswerMeaning::Completed, Accepted::Ends(AnswerMeaning::Completed)),
            (404, AnswerMeaning::Failed, Accepted::Ends(AnswerMeaning::Failed)),
            (502, AnswerMeaning::Inconclusive, Accepted::Ends(AnswerMeaning::Inconclusive)),
        ];
        for (status, meaning, expected) in cases {
            assert_eq!(accepted(status, meaning), expected, "{status} as {meaning:?}");
        }
    }

    #[test]
    fn a_resolution_has_a_status_that_says_what_it_says() {
        for (status, completed, failed) in [
            (199, false, false),
            (200, true, false),
            (399, true, false),
            (400, false, true),
            (599, false, true),
            (600, false, false),
        ] {
            let refused = resolved_as_completed(Outcome::bare(status)).err();
            let expected = InvalidResolution::NotOfCompleted { status };
            assert_eq!(refused, (!completed).then_some(expected), "{status}");
            let refused = resolved_as_failed(Outcome::bare(status)).err();
            let expected = InvalidResolution::NotOfFailed { status };
            assert_eq!(refused, (!failed).then_some(expected), "{status}");
        }
    }
}
