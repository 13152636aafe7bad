//! Signs of life for everything that runs here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::{
    Record, Timestamp, apply,
    limits::CLOCK_STEP,
    store::{Renew, Write, Written},
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep},
};

use crate::{
    engine::Inner,
    in_flight::{InFlightEntry, InFlightPhase},
};

/// Looks at what runs here six times per shortest lease, and renews what has used up a third.
#[derive(Debug)]
pub(crate) struct Renewer {
    tick_micros: AtomicU64,
    sooner: Notify,
}

const TICK_MAX: Duration = Duration::from_secs(1);

impl Renewer {
    pub(crate) fn new() -> Self {
        Self { tick_micros: AtomicU64::new(micros(TICK_MAX)), sooner: Notify::new() }
    }

    /// An operation with this lease has begun.
    pub(crate) fn expect(&self, lease: Duration) {
        let tick = micros(lease / 6);
        if tick < self.tick_micros.fetch_min(tick, Relaxed) {
            self.sooner.notify_one();
        }
    }

    pub(crate) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
        loop {
            let tick = Duration::from_micros(inner.renewer.tick_micros.load(Relaxed));
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = inner.renewer.sooner.notified() => continue,
                () = sleep(tick) => {}
            }
            inner.renewer.tick_micros.store(micros(TICK_MAX), Relaxed);
            let Some(now) = inner.clock.now() else { continue };
            for flight in inner.flights.all() {
                if let InFlightPhase::Running { record, lease, until } = flight.phase() {
                    inner.renewer.expect(lease);
                    if is_due(now, record.until(), lease) || is_used_up(until, lease) {
                        tokio::spawn(renew(Arc::clone(&inner), flight, record, lease));
                    }
                }
            }
        }
    }
}

/// A third of the lease is used up, or it was given by a clock that was ahead and says nothing now.
fn is_due(now: Timestamp, until: Timestamp, lease: Duration) -> bool {
    until.minus(lease * 2 / 3) <= now || now.plus(lease).plus(CLOCK_STEP) < until
}

/// A third of the lease is used up by the local clock, whatever the store's says.
fn is_used_up(until: Instant, lease: Duration) -> bool {
    until.saturating_duration_since(Instant::now()) <= lease * 2 / 3
}

async fn renew(
    inner: Arc<Inner>,
    flight: Arc<InFlightEntry>,
    record: Arc<Record>,
    lease: Duration,
) {
    let (id, fence, owner) = (record.operation.id(), record.fence, record.owner);
    let (renew, asked_at) = (Renew { id, fence, owner, lease }, Instant::now());
    match inner.commit(Write::Renew(renew)).await {
        Ok(Written::Done { now }) => {
            inner.counters.renewals.one();
            if let Some(renewed) = apply::renew(now, Some(&record), &renew) {
                flight.renewed(Arc::new(renewed), asked_at + lease);
            }
        }
        Ok(Written::Refused { .. }) => {
            inner.counters.leases_lost.one();
            tracing::warn!(operation = %id, fence = fence.get(), "a lease was lost");
            let over = Renew { lease: Duration::ZERO, ..renew };
            if let Some(lost) = apply::renew(Timestamp::ZERO, Some(&record), &over) {
                flight.renewed(Arc::new(lost), asked_at);
            }
        }
        Err(error) => {
            tracing::warn!(operation = %id, fence = fence.get(), %error, "a lease could not be renewed");
        }
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1000)
}
