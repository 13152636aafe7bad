//! Answers of another Hapax further in that are not about what became of the operation.
//!
//! Kept as the outcome, "still at work" would be replayed long after the work was done.

use hapax_core::retry::AttemptResult;
use http::{HeaderMap, StatusCode};

use crate::{client::of_refusal, refusal_header, server::responses::code::Code};

/// What a complete answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InnerAnswer {
    /// It is what became of the operation.
    Outcome,
    /// This sending ran nothing: an earlier one is at work or in doubt further in, or it was refused.
    NothingRan,
    /// It may have been carried out further in, where it is also known by its key.
    Unknown,
}

/// What this answer is worth, by the code that another Hapax marks its refusals with.
pub(crate) fn worth(status: StatusCode, headers: &HeaderMap) -> InnerAnswer {
    if status != StatusCode::CONFLICT && !status.is_server_error() {
        return InnerAnswer::Outcome;
    }
    let Some(code) = refusal_header::code(headers).and_then(Code::parse) else {
        return InnerAnswer::Outcome;
    };
    if matches!(
        code,
        Code::ExecutionTimedOut | Code::ExecutionUnanswered | Code::OutcomeNotRecorded
    ) {
        return InnerAnswer::Unknown;
    }
    match of_refusal(code) {
        Some(AttemptResult::InFlight | AttemptResult::InDoubt | AttemptResult::NothingRan) => {
            InnerAnswer::NothingRan
        }
        Some(_) | None => InnerAnswer::Outcome,
    }
}
