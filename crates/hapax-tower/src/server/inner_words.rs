//! Answers of another Hapax further in that are not about what became of the operation.
//!
//! Kept as the outcome, "still at work" would be replayed long after the work was done.

use hapax_core::retry::Heard;
use http::{StatusCode, response::Parts};

use crate::described;

/// What a complete answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It is what became of the operation.
    Outcome,
    /// This sending ran nothing: an earlier one is at work or in doubt further in, or it was refused.
    NothingRan,
    /// It may have been carried out further in, where it is also known by its key.
    Unknown,
}

/// What this answer is worth, by the code that another Hapax marks its refusals with.
pub(crate) fn worth(parts: &Parts) -> Worth {
    if parts.status != StatusCode::CONFLICT && !parts.status.is_server_error() {
        return Worth::Outcome;
    }
    match described::code(&parts.headers) {
        None => Worth::Outcome,
        Some("execution-timed-out" | "execution-unanswered" | "outcome-not-recorded") => {
            Worth::Unknown
        }
        code @ Some(_) => match Heard::answer(parts.status.as_u16(), code) {
            Heard::InFlight | Heard::InDoubt | Heard::NothingRan => Worth::NothingRan,
            Heard::NotSent
            | Heard::Unanswered
            | Heard::KeyReused
            | Heard::Gone
            | Heard::NotRetained
            | Heard::Status(_) => Worth::Outcome,
        },
    }
}
