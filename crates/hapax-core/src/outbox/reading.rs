//! What a reader asks for, what it is shown, and what comes of it.

use super::stored_event::{Lane, Position, Stored};
use crate::{limits::OUTBOX_LANES, record::Fence, time::Timestamp};

/// A lane as it was leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneHeld {
    /// Which one.
    pub lane: Lane,
    /// What every write for it names.
    pub fence: Fence,
    /// Up to where it is final.
    pub low: Position,
}

/// How much one read may bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Rows, those of other lanes included; at most
    /// [`OUTBOX_READ_ROWS_MAX`](crate::limits::OUTBOX_READ_ROWS_MAX).
    pub rows: usize,
    /// Bytes of events; one event comes even if it is larger.
    pub bytes: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { rows: 2000, bytes: 8 << 20 }
    }
}

/// What a reader wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Rows above this position,
    pub after: Position,
    /// and not above this one,
    pub until: Position,
    /// and rows in these ranges, which lie at or below `after`; all of them in one snapshot, in
    /// order of their positions.
    pub gaps: Vec<(Position, Position)>,
    /// Ranges above `after` that were missing when they were read for some lanes.
    pub late: Vec<(Position, Position)>,
    /// For each lane, the position after which its events are wanted; `None` for lanes that are not
    /// leased. What was missing is wanted in every leased lane.
    pub lanes: [Option<Position>; OUTBOX_LANES as usize],
    /// Whether what this look does not show may be given up for good. Then the snapshot must not be
    /// older than the call; otherwise an older one will do.
    pub decides: bool,
    /// How much of it.
    pub limits: ReadLimits,
}

impl Look {
    /// Whether the event at this position of this lane is wanted, as far as the lane goes.
    pub fn wants(&self, lane: Lane, position: Position) -> bool {
        self.lanes[lane.index()].is_some_and(|read| {
            position > read || position <= self.after || within(&self.late, position)
        })
    }

    /// Whether a row at this position was asked for.
    pub fn covers(&self, position: Position) -> bool {
        (position > self.after && position <= self.until) || within(&self.gaps, position)
    }
}

fn within(ranges: &[(Position, Position)], position: Position) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&position))
}

/// What was seen, in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The store's clock.
    pub now: Timestamp,
    /// Which connection saw it. With another one, the store may have restarted and forgotten
    /// commits that were not yet on disk, and their positions may be given again.
    pub session: u64,
    /// What is visible, in order of position.
    pub rows: Vec<SeenRow>,
    /// Whether that is all that was asked for; otherwise it ends with the last row.
    pub complete: bool,
    /// Parked events of the leased lanes that are to be sent again, in order of position.
    pub replay: Vec<Stored>,
}

/// One visible position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRow {
    /// Which one.
    pub position: Position,
    /// The event, if it is wanted here and not parked already.
    pub event: Option<Stored>,
    /// Whether earlier events of its key are parked and hold it back.
    pub held: bool,
}

/// What a read brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventBatch {
    /// To be sent, those of one key in this order.
    pub events: Vec<EventDelivery>,
    /// Whether there may be more at once.
    pub more: bool,
    /// The reader began again from what is stored: what it delivered before and was not
    /// acknowledged is delivered again.
    pub restarted: bool,
}

/// An event to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDelivery {
    /// What is to be sent.
    pub event: Stored,
    /// Where it comes from.
    pub source: DeliverySource,
}

/// Where a delivered event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliverySource {
    /// From the log, as written.
    Log,
    /// From the log, while earlier events of its key are parked: to be parked behind them
    /// ([`Hold::Follow`](super::Hold::Follow)), not sent.
    Held,
    /// From what was parked, because somebody asked for it.
    Parked,
}

/// How far lanes are final, to be stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneProgress {
    /// Lanes that are further than the store knows.
    pub lows: Vec<Low>,
    /// Parked events that have been sent.
    pub replayed: Vec<Replayed>,
}

/// How far a lane is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Low {
    /// Which lane.
    pub lane: Lane,
    /// The lease under which that was found.
    pub fence: Fence,
    /// Up to here.
    pub low: Position,
}

/// A parked event that has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Which lane.
    pub lane: Lane,
    /// The lease under which it was sent.
    pub fence: Fence,
    /// Which event.
    pub position: Position,
}

impl LaneProgress {
    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.lows.is_empty() && self.replayed.is_empty()
    }
}
