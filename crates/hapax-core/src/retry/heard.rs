//! What came of an attempt, and whether another one is safe.

use super::breaker::Health;

/// What came of an attempt: a closed list, so that every kind has an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Heard {
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
    /// An answer with this status, about which nothing else is known.
    Status(u16),
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
pub enum Verdict {
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

impl Heard {
    /// What an answer says, by its status and by the code of its problem document.
    ///
    /// The code is the last part of the problem's `type`, if the answer is one of Hapax's own
    /// refusals; any other code is as good as none.
    pub fn answer(status: u16, problem: Option<&str>) -> Self {
        match problem {
            Some("key-in-flight") => Self::InFlight,
            Some("key-reused") => Self::KeyReused,
            Some("outcome-in-doubt") => Self::InDoubt,
            Some("response-not-retained") => Self::NotRetained,
            Some("key-gone" | "first-sent-too-old") => Self::Gone,
            Some(
                "body-incomplete"
                | "caller-unverifiable"
                | "deadline-passed"
                | "execution-not-started"
                | "overloaded"
                | "shutting-down"
                | "store-unavailable"
                | "stored-by-newer-version"
                | "transaction-rolled-back",
            ) => Self::NothingRan,
            Some(_) | None => Self::Status(status),
        }
    }

    /// What to do about it.
    pub fn verdict(self, repeat: Repeat) -> Verdict {
        match (self, repeat) {
            (Self::NotSent | Self::NothingRan, _) => Verdict::Retry,
            (Self::InFlight, _) => Verdict::Wait,
            (Self::KeyReused | Self::NotRetained | Self::Gone, _) => Verdict::Never,
            (Self::InDoubt, _) | (Self::Unanswered, Repeat::Harmful) => Verdict::Unknown,
            (Self::Unanswered, Repeat::Harmless) => Verdict::Retry,
            (Self::Status(status), repeat) => Meaning::of(status).verdict(repeat),
        }
    }

    /// What it says about the destination, for its breaker.
    pub fn health(self) -> Health {
        match self {
            Self::NotSent | Self::Unanswered | Self::NothingRan => Health::Bad,
            Self::InFlight | Self::KeyReused | Self::InDoubt | Self::NotRetained | Self::Gone => {
                Health::Good
            }
            Self::Status(status) => match Meaning::of(status) {
                Meaning::Failed | Meaning::Unheard => Health::Bad,
                Meaning::Answer | Meaning::NotNow | Meaning::Refused => Health::Good,
            },
        }
    }

    /// Whether this attempt may have had its effect.
    ///
    /// An operation whose last attempt ended otherwise is still unknown if an earlier one left a
    /// doubt and nothing after it said what happened.
    pub fn leaves_doubt(self) -> bool {
        match self {
            Self::Unanswered | Self::InFlight | Self::InDoubt => true,
            Self::NotSent | Self::NothingRan | Self::KeyReused | Self::NotRetained | Self::Gone => {
                false
            }
            Self::Status(status) => match Meaning::of(status) {
                Meaning::Failed | Meaning::Unheard => true,
                Meaning::Answer | Meaning::NotNow | Meaning::Refused => false,
            },
        }
    }
}

/// What a bare status says.
#[derive(Clone, Copy)]
enum Meaning {
    Answer,
    /// Refused before it began, and worth another try.
    NotNow,
    /// Refused, and will be again.
    Refused,
    /// It failed somewhere on its way, perhaps after its effect.
    Failed,
    /// No final answer of HTTP.
    Unheard,
}

impl Meaning {
    fn of(status: u16) -> Self {
        match status {
            200..=299 | 303 | 304 => Self::Answer,
            408 | 425 | 429 => Self::NotNow,
            // A redirect is not followed: it would send the request, and its key, to somebody else.
            300..=499 | 501 | 505 => Self::Refused,
            500..=599 => Self::Failed,
            _ => Self::Unheard,
        }
    }

    fn verdict(self, repeat: Repeat) -> Verdict {
        match (self, repeat) {
            (Self::Answer, _) => Verdict::Success,
            (Self::NotNow | Self::Failed | Self::Unheard, Repeat::Harmless) => Verdict::Retry,
            (Self::Refused, _) | (Self::NotNow, Repeat::Harmful) => Verdict::Never,
            (Self::Failed | Self::Unheard, Repeat::Harmful) => Verdict::Unknown,
        }
    }
}
