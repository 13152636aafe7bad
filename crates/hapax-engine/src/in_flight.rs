//! Which operations this process is busy with, so that their duplicates ask here first.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hapax_core::{OperationId, Record, Timestamp};
use tokio::{sync::Notify, time::Instant};

use crate::digest::DigestHasher;

#[derive(Debug, Default)]
pub(crate) struct InFlightRegistry {
    map: Mutex<HashMap<OperationId, Arc<InFlightEntry>, DigestHasher>>,
    landed: Notify,
}

/// One operation this process is busy with.
#[derive(Debug)]
pub(crate) struct InFlightEntry {
    phase: Mutex<InFlightPhase>,
    changed: Notify,
}

#[derive(Debug, Clone)]
pub(crate) enum InFlightPhase {
    /// The store is being asked.
    Claiming,
    /// It runs here.
    Running {
        /// What is stored, as last heard.
        record: Arc<Record>,
        /// How long each lease lasts.
        lease: Duration,
        /// Until when it lasts by the local clock, which nobody sets: counted from when it was asked
        /// for, which is before it was given.
        until: Instant,
    },
    /// It is over here.
    Landed {
        /// What was stored in the end, if known.
        record: Option<Arc<Record>>,
    },
}

/// A place in the register. Leaving it, even by a panic, wakes those who wait beside it.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    flights: Arc<InFlightRegistry>,
    id: OperationId,
    flight: Arc<InFlightEntry>,
    boarded_at: Instant,
}

pub(crate) enum Boarding {
    /// Nobody here is busy with it.
    First(InFlightGuard),
    /// Somebody is.
    Beside(Arc<InFlightEntry>),
}

impl InFlightRegistry {
    pub(crate) fn board(self: &Arc<Self>, id: OperationId) -> Boarding {
        let mut map = self.lock();
        if let Some(flight) = map.get(&id) {
            return Boarding::Beside(Arc::clone(flight));
        }
        Boarding::First(self.seat(&mut map, id))
    }

    /// Takes the place of a flight whose lease is over.
    pub(crate) fn board_over(
        self: &Arc<Self>,
        id: OperationId,
        over: &Arc<InFlightEntry>,
    ) -> Option<InFlightGuard> {
        let mut map = self.lock();
        let unchanged = map.get(&id).is_some_and(|flight| Arc::ptr_eq(flight, over));
        unchanged.then(|| self.seat(&mut map, id))
    }

    pub(crate) fn get(&self, id: OperationId) -> Option<Arc<InFlightEntry>> {
        self.lock().get(&id).map(Arc::clone)
    }

    /// Everything that runs here.
    pub(crate) fn all(&self) -> Vec<Arc<InFlightEntry>> {
        self.lock().values().map(Arc::clone).collect()
    }

    /// Ends when nothing runs here any more.
    pub(crate) async fn all_landed(&self) {
        loop {
            let landed = self.landed.notified();
            if self.lock().is_empty() {
                return;
            }
            landed.await;
        }
    }

    fn seat(
        self: &Arc<Self>,
        map: &mut HashMap<OperationId, Arc<InFlightEntry>, DigestHasher>,
        id: OperationId,
    ) -> InFlightGuard {
        let flight = Arc::new(InFlightEntry {
            phase: Mutex::new(InFlightPhase::Claiming),
            changed: Notify::new(),
        });
        map.insert(id, Arc::clone(&flight));
        InFlightGuard { flights: Arc::clone(self), id, flight, boarded_at: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OperationId, Arc<InFlightEntry>, DigestHasher>> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlightEntry {
    pub(crate) fn phase(&self) -> InFlightPhase {
        self.lock().clone()
    }

    /// Ends when it is over here, or something else about it changed.
    pub(crate) async fn next_phase(&self) {
        self.change_while(|phase| !matches!(phase, InFlightPhase::Landed { .. })).await;
    }

    /// Ends when the claim under way is decided.
    pub(crate) async fn claimed(&self) {
        self.change_while(|phase| matches!(phase, InFlightPhase::Claiming)).await;
    }

    /// Ends at once, or with the next change if the phase is one to wait in.
    async fn change_while(&self, waits: impl FnOnce(&InFlightPhase) -> bool) {
        // Enlisted before the look, so no change in between can be missed.
        let changed = self.changed.notified();
        if waits(&self.phase()) {
            changed.await;
        }
    }

    /// Notes a lease that was renewed or lost, unless it is over here or another attempt's meanwhile.
    pub(crate) fn renewed(&self, renewed: Arc<Record>, ends_at: Instant) {
        if let InFlightPhase::Running { record, until, .. } = &mut *self.lock()
            && (record.fence, record.owner) == (renewed.fence, renewed.owner)
        {
            (*record, *until) = (renewed, ends_at);
        }
    }

    /// How long the lease lasts: by the local clock, and by the store's where that says less. Either
    /// may have stood still or been set.
    pub(crate) fn lease_left(&self, now_at_store: Option<Timestamp>) -> Duration {
        match (&*self.lock(), now_at_store) {
            (InFlightPhase::Running { record, until, .. }, Some(now)) => {
                record.until().after(now).min(until.saturating_duration_since(Instant::now()))
            }
            (
                InFlightPhase::Running { .. }
                | InFlightPhase::Claiming
                | InFlightPhase::Landed { .. },
                _,
            ) => Duration::ZERO,
        }
    }

    fn lock(&self) -> MutexGuard<'_, InFlightPhase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: InFlightPhase) {
        *self.lock() = phase;
        self.changed.notify_waiters();
    }
}

impl InFlightGuard {
    /// Runs what was claimed from this seat.
    pub(crate) fn run(&self, record: Arc<Record>, lease: Duration) {
        self.run_again(record, lease, self.boarded_at);
    }

    /// Runs what was claimed once more, and was asked for then.
    pub(crate) fn run_again(&self, record: Arc<Record>, lease: Duration, asked_at: Instant) {
        self.flight.enter(InFlightPhase::Running { record, lease, until: asked_at + lease });
    }

    pub(crate) fn flight(&self) -> &Arc<InFlightEntry> {
        &self.flight
    }

    /// Leaves, telling those who wait what was stored in the end.
    pub(crate) fn land(self, record: Option<Arc<Record>>) {
        self.flight.enter(InFlightPhase::Landed { record });
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut map = self.flights.lock();
        if map.get(&self.id).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            map.remove(&self.id);
        }
        drop(map);
        if !matches!(self.flight.phase(), InFlightPhase::Landed { .. }) {
            self.flight.enter(InFlightPhase::Landed { record: None });
        }
        self.flights.landed.notify_waiters();
    }
}
