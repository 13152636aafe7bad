//! What time it is at the store, between two answers from it.

use std::sync::{Mutex, PoisonError};

use hapax_core::Timestamp;
use tokio::time::Instant;

/// The store's clock as last heard, carried on by the local monotonic one.
///
/// Good enough to say how long to wait and to answer from the cache; every write is decided by the
/// store's own clock.
#[derive(Debug)]
pub(crate) struct StoreClock(Mutex<Option<(Timestamp, Instant)>>);

impl StoreClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The store just said it is `now`.
    pub(crate) fn heard(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Instant::now()));
    }

    /// The present time at the store; `None` before it was ever heard.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        let heard = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map(|(now, at)| now.plus(at.elapsed()))
    }
}
