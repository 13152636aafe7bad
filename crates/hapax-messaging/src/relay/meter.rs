//! What a relay has done, and how far behind its destination is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::outbox::Lag;

use super::{RelayStatus, StatusHandle};

/// What is measured of one relay. Clones show the same one.
#[derive(Debug, Clone)]
pub struct RelayMeter {
    status: StatusHandle,
    behind: Arc<LagCounters>,
}

#[derive(Debug, Default)]
struct LagCounters {
    events: AtomicU64,
    micros: AtomicU64,
    parked: AtomicU64,
}

impl RelayMeter {
    /// Of the relay with this status.
    pub fn new(status: StatusHandle) -> Self {
        Self { status, behind: Arc::default() }
    }

    /// What the relay has done.
    pub fn status(&self) -> RelayStatus {
        self.status.now()
    }

    /// How far behind its destination was a moment ago: shown until the next is told.
    pub fn observe(&self, lag: &Lag) {
        self.behind.events.store(lag.events(), Relaxed);
        self.behind.parked.store(lag.parked, Relaxed);
        let micros = u64::try_from(lag.age().as_micros()).unwrap_or(u64::MAX);
        self.behind.micros.store(micros, Relaxed);
    }

    /// How many events its destination was behind when that was last told.
    pub fn events_behind(&self) -> u64 {
        self.behind.events.load(Relaxed)
    }

    /// How long the oldest of them had waited.
    pub fn age(&self) -> Duration {
        Duration::from_micros(self.behind.micros.load(Relaxed))
    }

    /// How many events were parked for its destination when that was last told.
    pub fn parked(&self) -> u64 {
        self.behind.parked.load(Relaxed)
    }
}
