//! What one relay has read, what it has sent, and how far that is final.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    gaps::{Gaps, Writer},
    reading::{
        DeliverySource, EventBatch, EventDelivery, LaneHeld, LaneProgress, Look, Low, ReadLimits,
        Replayed, Seen, SeenRow,
    },
    stored_event::{Lane, Position, Stored},
};
use crate::{
    limits::{OUTBOX_GAPS_MAX, OUTBOX_LANES, OUTBOX_READ_ROWS_MAX},
    record::Fence,
    time::Timestamp,
};

/// Reads the leased lanes of one destination, in order.
///
/// What a read shows may be sent at once, whatever else is in flight: a key's writers wait for each
/// other before they take a position, so a read that shows one of its events shows all its earlier
/// ones, or they never come. What a read does not show is a gap, looked at again with every read.
///
/// The reader counts what was delivered and not yet acknowledged. A lane's *low* is the position up
/// to which everything is acknowledged, foreign, or dead: it is all that has to be stored.
///
/// Steps come in turns: [`look`](Self::look), then [`take`](Self::take) with its answer; now and
/// then [`inquire`](Self::inquire), then [`listed`](Self::listed). [`poll`](super::poll) does that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reader {
    lanes: BTreeMap<Lane, LaneState>,
    /// Everything visible up to here has been read, for some lane.
    scan: Position,
    gaps: Gaps,
    session: Option<u64>,
    turn: ReaderTurn,
    listed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LaneState {
    fence: Fence,
    /// What the store says is final.
    stored: Position,
    /// What was read for this lane, gaps aside.
    read: Position,
    /// Delivered from the log, and not acknowledged.
    pending: BTreeSet<Position>,
    /// Delivered from what was parked, and not acknowledged.
    replaying: BTreeSet<Position>,
    /// The same, acknowledged, and not yet removed from what is parked.
    replayed: BTreeSet<Position>,
}

/// Whose turn it is: what was asked for earlier and answered late counts for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ReaderTurn {
    Idle,
    Looking,
    Inquiring,
}

/// How often writers are listed at most, by the store's clock: that is not free for the store,
/// and only what is stored of the progress waits for it.
const LISTING_EVERY: Duration = Duration::from_millis(50);

impl Reader {
    /// A reader of no lane.
    pub fn new() -> Self {
        Self {
            lanes: BTreeMap::new(),
            scan: 0,
            gaps: Gaps::default(),
            session: None,
            turn: ReaderTurn::Idle,
            listed_at: None,
        }
    }

    /// Takes a lane in. Reading goes back to where it is final; what was read for other lanes is
    /// not delivered again. A lane that is there already is begun anew.
    pub fn add(&mut self, held: LaneHeld) {
        let state = LaneState {
            fence: held.fence,
            stored: held.low,
            read: held.low,
            pending: BTreeSet::new(),
            replaying: BTreeSet::new(),
            replayed: BTreeSet::new(),
        };
        if self.lanes.is_empty() {
            self.scan = held.low;
            self.gaps = Gaps::default();
        }
        for other in self.lanes.values_mut() {
            other.read = other.read.max(self.scan);
        }
        self.scan = self.scan.min(held.low);
        self.lanes.insert(held.lane, state);
    }

    /// Lets a lane go. What was delivered of it and not acknowledged is forgotten.
    pub fn remove(&mut self, lane: Lane) {
        self.lanes.remove(&lane);
    }

    /// The lanes, with their fences, and up to where they are final.
    pub fn lanes(&self) -> impl Iterator<Item = LaneHeld> {
        self.lanes.iter().map(|(lane, state)| LaneHeld {
            lane: *lane,
            fence: state.fence,
            low: self.low(state),
        })
    }

    /// The fence of a lane, if it is read here.
    pub fn fence(&self, lane: Lane) -> Option<Fence> {
        self.lanes.get(&lane).map(|state| state.fence)
    }

    /// How many events are delivered and not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.lanes.values().map(|state| state.pending.len() + state.replaying.len()).sum()
    }

    /// What is missing below what was read.
    pub fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// How far was read, gaps aside.
    pub fn scanned(&self) -> Position {
        self.scan
    }

    /// What to look at next.
    pub fn look(&mut self, limits: ReadLimits) -> Look {
        self.turn = ReaderTurn::Looking;
        let mut lanes = [None; OUTBOX_LANES as usize];
        for (lane, state) in &self.lanes {
            lanes[lane.index()] = Some(state.read);
        }
        let full = self.gaps.len() >= OUTBOX_GAPS_MAX;
        let rows = limits.rows.clamp(1, OUTBOX_READ_ROWS_MAX);
        Look {
            after: self.scan,
            until: if full { self.scan } else { Position::MAX },
            gaps: self.gaps.within(Position::MIN, self.scan),
            late: self.gaps.within(self.scan + 1, Position::MAX),
            lanes,
            decides: self.gaps.awaits_read(),
            limits: ReadLimits { rows, ..limits },
        }
    }

    /// Takes what was seen, and says what to send.
    pub fn take(&mut self, seen: Seen) -> EventBatch {
        if self.turn != ReaderTurn::Looking {
            return EventBatch::default();
        }
        self.turn = ReaderTurn::Idle;
        if self.session.is_some_and(|session| session != seen.session) {
            self.restart();
            self.session = Some(seen.session);
            return EventBatch { restarted: true, more: true, events: Vec::new() };
        }
        self.session = Some(seen.session);
        let mut batch = EventBatch { more: !seen.complete, ..EventBatch::default() };
        self.take_replay(seen.replay, &mut batch);
        let last = seen.rows.last().map_or(Position::MIN, |row| row.position);
        for row in seen.rows {
            self.take_row(row, &mut batch);
        }
        // Above the scan nothing was looked at: it may have gone back for a lane that came late.
        self.gaps.read_through(if seen.complete { self.scan } else { last });
        batch
    }

    /// An event was sent.
    pub fn acknowledge(&mut self, lane: Lane, position: Position) {
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        if state.replaying.remove(&position) {
            state.replayed.insert(position);
        } else {
            state.pending.remove(&position);
        }
    }

    /// An event was parked: what becomes of it is no longer this reader's concern.
    pub fn parked(&mut self, lane: Lane, position: Position) {
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        if !state.replaying.remove(&position) {
            state.pending.remove(&position);
        }
    }

    /// What the store does not know yet.
    pub fn progress(&self) -> LaneProgress {
        let mut progress = LaneProgress::default();
        for (lane, state) in &self.lanes {
            let (lane, fence, low) = (*lane, state.fence, self.low(state));
            if low > state.stored {
                progress.lows.push(Low { lane, fence, low });
            }
            let replayed = state.replayed.iter();
            progress.replayed.extend(replayed.map(|position| Replayed {
                lane,
                fence,
                position: *position,
            }));
        }
        progress
    }

    /// The store has this progress now, except of these lanes, which somebody else has: they are
    /// let go.
    pub fn stored(&mut self, progress: &LaneProgress, lost: &[Lane]) {
        for lane in lost {
            self.remove(*lane);
        }
        for low in &progress.lows {
            if let Some(state) = self.lanes.get_mut(&low.lane) {
                state.stored = state.stored.max(low.low);
            }
        }
        for replayed in &progress.replayed {
            if let Some(state) = self.lanes.get_mut(&replayed.lane) {
                state.replayed.remove(&replayed.position);
            }
        }
    }

    /// Whether to ask who writes at this instant: if that could show a gap to be dead, and it was
    /// not asked a moment ago. The answer goes to [`listed`](Self::listed).
    pub fn inquire(&mut self, now: Timestamp) -> bool {
        let recently = self
            .listed_at
            .is_some_and(|listed_at| now >= listed_at && now < listed_at.plus(LISTING_EVERY));
        let inquires = !recently && self.inquire_at_once();
        if inquires {
            self.listed_at = Some(now);
        }
        inquires
    }

    /// The same, however often it was asked.
    pub fn inquire_at_once(&mut self) -> bool {
        let inquires = self.turn == ReaderTurn::Idle && self.gaps.awaits_listing();
        if inquires {
            self.turn = ReaderTurn::Inquiring;
        }
        inquires
    }

    /// These were all writers, listed after the inquiry.
    pub fn listed(&mut self, writers: &[Writer]) {
        if self.turn == ReaderTurn::Inquiring {
            self.turn = ReaderTurn::Idle;
            self.gaps.listed(writers);
        }
    }

    /// Begins again from what is stored.
    fn restart(&mut self) {
        self.gaps = Gaps::default();
        for state in self.lanes.values_mut() {
            state.read = state.stored;
            state.pending.clear();
            state.replaying.clear();
        }
        self.scan = self.lanes.values().map(|state| state.stored).min().unwrap_or(0);
    }

    fn take_replay(&mut self, replay: Vec<Stored>, batch: &mut EventBatch) {
        for event in replay {
            let Some(state) = self.lanes.get_mut(&event.lane) else { continue };
            if !state.replayed.contains(&event.position) && state.replaying.insert(event.position) {
                batch.events.push(EventDelivery { event, source: DeliverySource::Parked });
            }
        }
    }

    fn take_row(&mut self, row: SeenRow, batch: &mut EventBatch) {
        let position = row.position;
        let was_gap = self.gaps.fill(position);
        if position > self.scan {
            if position > self.scan + 1 {
                self.gaps.open(self.scan + 1, position - 1);
            }
            self.scan = position;
        } else if !was_gap {
            return;
        }
        if let Some(event) = row.event
            && let Some(state) = self.lanes.get_mut(&event.lane)
            && (was_gap || position > state.read)
            && state.pending.insert(position)
        {
            let source = if row.held { DeliverySource::Held } else { DeliverySource::Log };
            batch.events.push(EventDelivery { event, source });
        }
    }

    fn low(&self, state: &LaneState) -> Position {
        let read = state.read.max(self.scan);
        let gap = self.gaps.first().unwrap_or(Position::MAX);
        let pending = state.pending.first().copied().unwrap_or(Position::MAX);
        read.min(gap.saturating_sub(1)).min(pending.saturating_sub(1)).max(state.stored)
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}
