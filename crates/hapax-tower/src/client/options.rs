//! How requests are pursued.

use std::{fmt, sync::Arc, time::Duration};

use hapax_core::retry::{AttemptHistory, Schedule};

use super::{destination::Destinations, watch::Watch};

/// How a layer pursues every request that does not say otherwise.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_tower::client::{RetryLayer, RetryOptions};
///
/// let options = RetryOptions { deadline: Duration::from_secs(20), ..RetryOptions::default() };
/// let layer = RetryLayer::new(options)?;
/// # drop(layer);
/// # Ok::<(), hapax_tower::client::InvalidRetry>(())
/// ```
#[derive(Debug, Clone)]
pub struct RetryOptions {
    /// How often a request is tried, and how long it waits in between.
    pub schedule: Schedule,
    /// One limit over all attempts of a request, its pauses included.
    pub deadline: Duration,
    /// How long one attempt may take; the deadline can only make it shorter.
    pub attempt_timeout: Duration,
    /// The largest request that is kept in memory to be sent again; a larger one is refused.
    pub request_bytes_max: usize,
    /// The largest response that is awaited whole; a larger one is handed on as it comes.
    pub response_bytes_max: usize,
    /// Who makes keys.
    pub keys: Keys,
    /// Whether the time left is also sent as `grpc-timeout`, and read from there.
    pub grpc_timeout: bool,
    /// What all calls to one place share.
    pub destinations: Destinations,
}

impl Default for RetryOptions {
    /// Five attempts in 60 s, 10 s each; 1 MiB out and 16 MiB back; keys are added.
    fn default() -> Self {
        Self {
            schedule: Schedule::default(),
            deadline: Duration::from_secs(60),
            attempt_timeout: Duration::from_secs(10),
            request_bytes_max: 1 << 20,
            response_bytes_max: 16 << 20,
            keys: Keys::Add,
            grpc_timeout: false,
            destinations: Destinations::default(),
        }
    }
}

impl RetryOptions {
    pub(super) fn check(&self) -> Result<(), InvalidRetry> {
        if self.deadline.is_zero() || self.attempt_timeout.is_zero() {
            return Err(InvalidRetry::NoTime);
        }
        Ok(())
    }
}

/// Who makes the key of a request that changes something.
///
/// ```
/// use hapax_tower::client::{Keys, RetryOptions};
///
/// let options = RetryOptions { keys: Keys::OnlyGiven, ..RetryOptions::default() };
/// # drop(options);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keys {
    /// The layer makes one for every request that has none and is not idempotent by its method.
    Add,
    /// The caller alone: a request without a key that is not idempotent is sent exactly once.
    OnlyGiven,
}

/// How one request is pursued: put it into the extensions of the request.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_tower::{Body, client::{Patience, Pursuit}};
///
/// let mut request = http::Request::post("https://api.example.com/charges").body(Body::empty())?;
/// request.extensions_mut().insert(Pursuit {
///     deadline: Some(Duration::from_secs(300)),
///     patience: Patience::UntilDeadline,
///     ..Pursuit::default()
/// });
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Pursuit {
    /// Another limit over all attempts than the layer's.
    pub deadline: Option<Duration>,
    /// Another schedule than the layer's.
    pub schedule: Option<Schedule>,
    /// What to do where the budget or the breaker of the destination says no.
    pub patience: Patience,
    /// What is known from attempts that were made before this call.
    pub history: AttemptHistory,
    /// Who hears of every attempt.
    pub watch: Option<Arc<dyn Watch>>,
}

impl fmt::Debug for Pursuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pursuit")
            .field("deadline", &self.deadline)
            .field("schedule", &self.schedule)
            .field("patience", &self.patience)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

/// What a call does where the budget or the breaker of its destination lets nothing through.
///
/// Neither is sent more because of it: who waits asks for the same tokens, later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Patience {
    /// It ends, for somebody waits who had better hear it at once.
    #[default]
    None,
    /// It waits, as long as its deadline allows.
    UntilDeadline,
}

/// Why options were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRetry {
    /// No attempt could ever be made.
    #[error("the deadline and the time of an attempt must be longer than nothing")]
    NoTime,
}
