//! What was tried, and why no more was.

use std::{fmt, time::Duration};

use hapax_core::retry::{Conclusion, Why};

/// What came of pursuing a request: an extension of every response.
///
/// ```
/// use hapax_tower::{Body, client::Tried};
///
/// fn log(answer: &http::Response<Body>) {
///     if let Some(tried) = answer.extensions().get::<Tried>() {
///         println!("{} attempts, {:?}: {}", tried.attempts, tried.conclusion, tried.stop);
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The key that was sent with every attempt.
    pub key: Option<String>,
    /// How often the request was sent, asking after an attempt in flight included.
    pub attempts: u32,
    /// Whether the answer is that of an earlier attempt, kept by the server.
    pub replayed: bool,
    /// What the operation came to.
    pub conclusion: Conclusion,
    /// Why no more was tried.
    pub stop: StopReason,
}

/// Why no further attempt was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// What was heard needs no other attempt, or forbids one.
    Answered,
    /// The request must not be repeated here: it has no key, or is repeated further out.
    NotRepeatable,
    /// All attempts were made.
    AttemptsUsedUp,
    /// What is left of the deadline is too short for another one.
    DeadlineTooNear,
    /// The destination is sent enough retries already.
    BudgetUsedUp,
    /// Calls to the destination fail; the next makes sense after this wait.
    BreakerOpen {
        /// When it makes sense to ask again.
        wait: Duration,
    },
}

impl From<Why> for StopReason {
    fn from(why: Why) -> Self {
        match why {
            Why::AttemptsUsedUp => Self::AttemptsUsedUp,
            Why::DeadlineTooNear => Self::DeadlineTooNear,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered => f.write_str("the answer allows no other attempt"),
            Self::NotRepeatable => f.write_str("it must not be repeated here"),
            Self::AttemptsUsedUp => f.write_str("all attempts were made"),
            Self::DeadlineTooNear => f.write_str("no time is left for another attempt"),
            Self::BudgetUsedUp => f.write_str("the retry budget of the destination is used up"),
            Self::BreakerOpen { wait } => {
                write!(f, "calls to the destination fail; ask again in {wait:?}")
            }
        }
    }
}
