//! The outbox in memory: the reference for all others, and the one a relay's tests use.
//!
//! It keeps nothing across a restart. Every event commits as it is emitted, so there are no gaps.

mod log;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use self::log::{MemoryLane, MemoryLog, Progressing, names, same_key};
use super::{
    Bell, Destination, Event, EventId, Lag, Lane, LaneProgress, Leases, Look, OutboxAdmin,
    OutboxLog, Park, Parked, ParkedPage, Registered, RelayLease, Retired, Seen, Selection, Start,
    Writer,
};
use crate::{
    limits::{OUTBOX_LANES, PAGE_RECORDS_MAX},
    record::{Fence, Owner},
    store::StoreError,
    time::Timestamp,
};

/// Events in memory. Clones share them.
///
/// ```
/// use hapax_core::{Event, Timestamp, outbox::memory::Outbox};
///
/// let outbox = Outbox::new(|| Timestamp::ZERO);
/// let ids = outbox.emit(&[Event::new("orders.placed", "order-17", "{}")?]);
/// assert_eq!(ids.len(), 1);
/// # Ok::<(), hapax_core::InvalidEvent>(())
/// ```
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    bell: Bell,
    log: Mutex<MemoryLog>,
}

impl Outbox {
    /// An empty outbox that reads its time from `clock`.
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let (clock, bell, log) = (Box::new(clock), Bell::new(), Mutex::default());
        Self { shared: Arc::new(Shared { clock, bell, log }) }
    }

    /// Writes events, committed together, and rings.
    pub fn emit(&self, events: &[Event]) -> Vec<EventId> {
        let now = self.now();
        let mut log = self.log();
        let ids = events.iter().map(|event| log.append(now, event)).collect();
        drop(log);
        self.shared.bell.ring();
        ids
    }

    fn log(&self) -> MutexGuard<'_, MemoryLog> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }
}

impl OutboxLog for Outbox {
    async fn register(&self, destination: Destination, start: Start) -> Result<(), StoreError> {
        let mut log = self.log();
        let low = match start {
            Start::Beginning => 0,
            Start::Now => log.last,
        };
        let name = destination.name().to_owned();
        let known = log.destinations.entry(name).or_insert_with(|| Progressing {
            destination: destination.clone(),
            paused: false,
            relays: Vec::new(),
            lanes: vec![MemoryLane { owner: None, fence: None, low }; usize::from(OUTBOX_LANES)],
            parked: std::collections::BTreeMap::new(),
        });
        known.destination = destination;
        Ok(())
    }

    async fn set_paused(&self, name: &str, paused: bool) -> Result<bool, StoreError> {
        let mut log = self.log();
        let known = log.destinations.get_mut(name);
        Ok(known.map(|known| known.paused = paused).is_some())
    }

    async fn lease(&self, lease: RelayLease) -> Result<Option<Leases>, StoreError> {
        let (now, mut log) = (self.now(), self.log());
        Ok(log.destinations.get_mut(&lease.destination).map(|known| known.lease(now, &lease)))
    }

    async fn release(
        &self,
        destination: &str,
        owner: Owner,
        lanes: Vec<(Lane, Fence)>,
    ) -> Result<(), StoreError> {
        let mut log = self.log();
        let Some(known) = log.destinations.get_mut(destination) else { return Ok(()) };
        for (lane, fence) in lanes {
            let row = &mut known.lanes[lane.index()];
            if row.owner == Some(owner) && row.fence == Some(fence) {
                row.owner = None;
            }
        }
        Ok(())
    }

    async fn leave(&self, destination: &str, owner: Owner) -> Result<(), StoreError> {
        let mut log = self.log();
        let Some(known) = log.destinations.get_mut(destination) else { return Ok(()) };
        known.relays.retain(|relay| relay.owner != owner);
        known.lanes.iter_mut().filter(|row| row.owner == Some(owner)).for_each(|row| {
            row.owner = None;
        });
        Ok(())
    }

    async fn look(&self, destination: &str, look: Look) -> Result<Option<Seen>, StoreError> {
        let (now, log) = (self.now(), self.log());
        Ok(log.destinations.get(destination).map(|known| log.look(now, known, &look)))
    }

    async fn writers(&self) -> Result<Vec<Writer>, StoreError> {
        Ok(Vec::new())
    }

    async fn acknowledge(
        &self,
        destination: &str,
        progress: LaneProgress,
    ) -> Result<Vec<Lane>, StoreError> {
        let mut log = self.log();
        let Some(known) = log.destinations.get_mut(destination) else {
            return Ok(progress.lows.iter().map(|low| low.lane).collect());
        };
        let mut lost = Vec::new();
        for low in progress.lows {
            let row = &mut known.lanes[low.lane.index()];
            if row.fence == Some(low.fence) {
                row.low = row.low.max(low.low);
            } else {
                lost.push(low.lane);
            }
        }
        for replayed in progress.replayed {
            if known.lanes[replayed.lane.index()].fence == Some(replayed.fence) {
                known.parked.remove(&replayed.position);
            } else if !lost.contains(&replayed.lane) {
                lost.push(replayed.lane);
            }
        }
        Ok(lost)
    }

    async fn park(&self, park: Park) -> Result<bool, StoreError> {
        let (now, mut log) = (self.now(), self.log());
        let MemoryLog { events, destinations, .. } = &mut *log;
        let Some(known) = destinations.get_mut(&park.destination) else { return Ok(false) };
        if known.lanes[park.lane.index()].fence != Some(park.fence) {
            return Ok(false);
        }
        for parking in park.events {
            known.park(now, events, &parking);
        }
        Ok(true)
    }

    async fn retire(&self, limit: usize) -> Result<Retired, StoreError> {
        let mut log = self.log();
        let lows = log.destinations.values().flat_map(|known| &known.lanes).map(|row| row.low);
        let low = lows.min().unwrap_or(0);
        let limit = limit.min(PAGE_RECORDS_MAX);
        let final_ones: Vec<_> = log.events.range(..=low).map(|(at, _)| *at).take(limit).collect();
        for position in &final_ones {
            log.events.remove(position);
        }
        Ok(Retired { events: u64::try_from(final_ones.len()).unwrap_or(u64::MAX) })
    }

    fn ring(&self) {
        self.shared.bell.ring();
    }

    async fn rung(&self) {
        self.shared.bell.rung().await;
    }
}

impl OutboxAdmin for Outbox {
    async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.log().destinations.remove(name).is_some())
    }

    async fn destinations(&self) -> Result<Vec<Registered>, StoreError> {
        let log = self.log();
        let registered = log.destinations.values().map(|known| Registered {
            destination: known.destination.clone(),
            paused: known.paused,
        });
        Ok(registered.collect())
    }

    async fn parked(
        &self,
        destination: &str,
        selection: Selection,
        page: ParkedPage,
    ) -> Result<Vec<Parked>, StoreError> {
        let log = self.log();
        let Some(known) = log.destinations.get(destination) else { return Ok(Vec::new()) };
        let parked = known
            .parked
            .values()
            .filter(|parked| parked.event.position > page.after && names(&selection, parked));
        Ok(parked.take(page.limit.min(PAGE_RECORDS_MAX)).cloned().collect())
    }

    async fn replay(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        let mut log = self.log();
        let Some(known) = log.destinations.get_mut(destination) else { return Ok(0) };
        // Those before it, where it stands in a key that is held.
        let one = match selection {
            Selection::One(position) => known.parked.get(&position).cloned(),
            Selection::All | Selection::Key { .. } => None,
        };
        let before = |parked: &Parked| {
            one.as_ref().is_some_and(|one| {
                one.holds_key
                    && parked.holds_key
                    && parked.event.position < one.event.position
                    && same_key(&parked.event, &one.event)
            })
        };
        let mut replaying = 0;
        for parked in known.parked.values_mut() {
            if !parked.replaying && (names(&selection, parked) || before(parked)) {
                parked.replaying = true;
                replaying += 1;
            }
        }
        drop(log);
        self.shared.bell.ring();
        Ok(replaying)
    }

    async fn forget(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        let mut log = self.log();
        let Some(known) = log.destinations.get_mut(destination) else { return Ok(0) };
        let before = known.parked.len();
        known.parked.retain(|_, parked| !names(&selection, parked));
        Ok(before - known.parked.len())
    }

    async fn lag(&self, destination: &str) -> Result<Option<Lag>, StoreError> {
        let (now, log) = (self.now(), self.log());
        Ok(log.destinations.get(destination).map(|known| log.lag(now, known)))
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("events", &self.log().events.len()).finish_non_exhaustive()
    }
}
