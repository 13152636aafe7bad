//! Rings an outbox from wherever something is committed.

use std::{fmt, sync::Arc};

use super::log::OutboxLog;

/// Rings an outbox after a commit that emitted something, so that a relay need not look for it by
/// itself. Clones ring the same one.
///
/// Given to what commits: the `Database` of a backend rings by itself after each transaction that
/// [emitted](crate::Event).
#[derive(Clone)]
pub struct Ringer(Arc<dyn Fn() + Send + Sync>);

impl Ringer {
    /// Rings this outbox.
    pub fn of(outbox: impl OutboxLog) -> Self {
        Self(Arc::new(move || outbox.ring()))
    }

    /// Says that something was emitted and committed.
    pub fn ring(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Ringer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ringer").finish_non_exhaustive()
    }
}
