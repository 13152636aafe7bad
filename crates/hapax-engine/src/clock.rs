//! What time it is at the store, between two answers from it.

use std::sync::{Mutex, PoisonError};

use hapax_core::Timestamp;
use tokio::time::Instant;

/// The store's clock as last heard, carried on by the local monotonic one.
///
/// Good enough to say how long to wait and to answer from the cache; every write is decided by the
/// store's own clock.
#[derive(Debug)]
pub(crate) struct StoreClock(Mutex<Option<Heard>>);

#[derive(Debug, Clone, Copy)]
struct Heard {
    now: Timestamp,
    at: Instant,
    asked_at: Instant,
}

impl StoreClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The store, asked at `asked_at`, has said it is `now`. What was asked before something newer
    /// counts no more, however late it comes.
    pub(crate) fn heard(&self, now: Timestamp, asked_at: Instant) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.is_none_or(|heard| heard.asked_at <= asked_at) {
            *heard = Some(Heard { now, at: Instant::now(), asked_at });
        }
    }

    /// The present time at the store; `None` before it was ever heard.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        let heard = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map(|heard| heard.now.plus(heard.at.elapsed()))
    }
}
