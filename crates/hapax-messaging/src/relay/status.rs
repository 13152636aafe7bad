//! What can be seen of a relay from outside.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// What a relay has done since it was made, and what it is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayStatus {
    /// Which destination it serves.
    pub destination: String,
    /// Events that were taken.
    pub sent: u64,
    /// Sends that were begun.
    pub batches: u64,
    /// Verdicts that an event was not taken now.
    pub missed: u64,
    /// Verdicts that an event will not be taken.
    pub refused: u64,
    /// Events that were parked.
    pub parked: u64,
    /// Sends that met a destination that took nothing.
    pub outages: u64,
    /// Reads of the log.
    pub looks: u64,
    /// Times the outbox could not be reached.
    pub outbox_errors: u64,
    /// Events in memory.
    pub waiting: u64,
    /// Lanes it has.
    pub lanes: u64,
    /// Whether sending was stopped by somebody.
    pub paused: bool,
    /// What is in the way at this moment, if anything is.
    pub trouble: Option<String>,
}

/// Shows the status of a relay while it runs. Clones show the same relay.
#[derive(Debug, Clone)]
pub struct StatusHandle {
    destination: String,
    counters: Arc<RelayCounters>,
}

impl StatusHandle {
    pub(super) fn new(destination: String, counters: Arc<RelayCounters>) -> Self {
        Self { destination, counters }
    }

    /// As it is now.
    pub fn now(&self) -> RelayStatus {
        let counters = &self.counters;
        RelayStatus {
            destination: self.destination.clone(),
            sent: counters.sent.load(Relaxed),
            batches: counters.batches.load(Relaxed),
            missed: counters.missed.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            parked: counters.parked.load(Relaxed),
            outages: counters.outages.load(Relaxed),
            looks: counters.looks.load(Relaxed),
            outbox_errors: counters.outbox_errors.load(Relaxed),
            waiting: counters.waiting.load(Relaxed),
            lanes: counters.lanes.load(Relaxed),
            paused: counters.paused.load(Relaxed) != 0,
            trouble: counters.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

#[derive(Default)]
pub(super) struct RelayCounters {
    pub(super) sent: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) missed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) parked: AtomicU64,
    pub(super) outages: AtomicU64,
    pub(super) looks: AtomicU64,
    pub(super) outbox_errors: AtomicU64,
    pub(super) waiting: AtomicU64,
    pub(super) lanes: AtomicU64,
    pub(super) paused: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl RelayCounters {
    pub(super) fn count(counter: &AtomicU64, more: usize) {
        counter.fetch_add(more as u64, Relaxed);
    }

    pub(super) fn set(counter: &AtomicU64, now: usize) {
        counter.store(now as u64, Relaxed);
    }

    pub(super) fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

impl fmt::Debug for RelayCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayCounters").field("sent", &self.sent).finish_non_exhaustive()
    }
}
