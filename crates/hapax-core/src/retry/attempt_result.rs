//! What came of an attempt, and whether another one is safe.

use super::breaker::Health;

/// What came of an attempt: a closed list, so that every kind has an answer.
///
/// Whoever speaks with the other side reads it from what was answered.
///
/// ```
/// use hapax_core::retry::{AttemptResult, AttemptVerdict, Repeat};
///
/// let reset = AttemptResult::Unanswered;
/// assert_eq!(reset.verdict(Repeat::Harmless), AttemptVerdict::Retry);
/// assert_eq!(reset.verdict(Repeat::Harmful), AttemptVerdict::Unknown);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptResult {
    /// Nothing left: no address, no connection, no handshake.
    NotSent,
    /// Something left, and no complete answer came back: reset, timeout, a body cut short.
    Unanswered,
    /// The other side says that it ran nothing of this attempt.
    NothingRan,
    /// An earlier attempt with the key is still being worked on.
    InFlight,
    /// The key belongs to another request.
    KeyReused,
    /// The other side does not know whether the operation happened.
    InDoubt,
    /// The operation was done, and its answer was not kept.
    NotRetained,
    /// The key was used, and what came of it is no longer known.
    Gone,
    /// An answer to hand on.
    Success {
        /// Tells one success of the other side from another; it has no other meaning here.
        code: u16,
    },
    /// Refused before it began, and worth another try.
    NotNow,
    /// Refused, and will be again.
    Refused,
    /// It failed somewhere on its way, perhaps after its effect.
    Failed,
}

/// What a second execution of the request would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// No second effect: it carries a key, or its method is idempotent.
    Harmless,
    /// A second effect: it must not be sent again once it may have arrived.
    Harmful,
}

/// What to do about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptVerdict {
    /// An answer to hand to the caller.
    Success,
    /// Try again: it did not happen, or a repetition has no second effect.
    Retry,
    /// Ask again as told: an earlier attempt is at work. This is no failure.
    Wait,
    /// Stop: the same request will be refused again, or must not be repeated.
    Never,
    /// Stop: it may have happened, and must not be repeated to find out.
    Unknown,
}

impl AttemptResult {
    /// What to do about it.
    pub fn verdict(self, repeat: Repeat) -> AttemptVerdict {
        match (self, repeat) {
            (Self::Success { .. }, _) => AttemptVerdict::Success,
            (Self::NotSent | Self::NothingRan, _)
            | (Self::Unanswered | Self::NotNow | Self::Failed, Repeat::Harmless) => {
                AttemptVerdict::Retry
            }
            (Self::InFlight, _) => AttemptVerdict::Wait,
            (Self::KeyReused | Self::NotRetained | Self::Gone | Self::Refused, _)
            | (Self::NotNow, Repeat::Harmful) => AttemptVerdict::Never,
            (Self::InDoubt, _) | (Self::Unanswered | Self::Failed, Repeat::Harmful) => {
                AttemptVerdict::Unknown
            }
        }
    }

    /// What it says about the destination, for its breaker.
    pub fn health(self) -> Health {
        match self {
            Self::NotSent | Self::Unanswered | Self::NothingRan | Self::Failed => Health::Bad,
            Self::InFlight
            | Self::KeyReused
            | Self::InDoubt
            | Self::NotRetained
            | Self::Gone
            | Self::Success { .. }
            | Self::NotNow
            | Self::Refused => Health::Good,
        }
    }

    /// Whether this attempt may have had its effect.
    ///
    /// An operation whose last attempt ended otherwise is still unknown if an earlier one left a
    /// doubt and nothing after it said what happened.
    pub fn leaves_doubt(self) -> bool {
        match self {
            Self::Unanswered | Self::InFlight | Self::InDoubt | Self::Failed => true,
            Self::NotSent
            | Self::NothingRan
            | Self::KeyReused
            | Self::NotRetained
            | Self::Gone
            | Self::Success { .. }
            | Self::NotNow
            | Self::Refused => false,
        }
    }
}
