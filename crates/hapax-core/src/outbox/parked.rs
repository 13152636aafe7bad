//! Events that were put aside, so that they are in nobody's way.

use super::stored_event::{Lane, Position, Stored};
use crate::{limits::PARK_REASON_BYTES_MAX, record::Fence, time::Timestamp};

/// Events of one lane that are put aside together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    /// Whose.
    pub destination: String,
    /// Which lane they belong to.
    pub lane: Lane,
    /// The lease under which they are put aside.
    pub fence: Fence,
    /// Which events, in order.
    pub events: Vec<Parking>,
}

/// One event to be put aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parking {
    /// Which one; from the log, or parked before and sent again in vain.
    pub position: Position,
    /// What becomes of later events of its key.
    pub hold: Hold,
    /// How often it was tried.
    pub attempts: u32,
    reason: String,
}

impl Parking {
    /// An event put aside for this reason, of which the beginning is kept if it is long.
    pub fn new(position: Position, hold: Hold, attempts: u32, reason: impl Into<String>) -> Self {
        let mut reason: String = reason.into().replace('\0', "\u{fffd}");
        while reason.len() > PARK_REASON_BYTES_MAX {
            reason.pop();
        }
        Self { position, hold, attempts, reason }
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// What becomes of later events of a parked event's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hold {
    /// They go on without it.
    Message,
    /// They are parked behind it, so that the key's order is kept.
    Tail,
    /// It is itself such a later one: it stands, or is sent again, with those before it.
    Follow,
}

/// An event that was put aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The event, as it was written.
    pub event: Stored,
    /// Whether later events of its key wait behind it.
    pub holds_key: bool,
    /// Whether it is to be sent again.
    pub replaying: bool,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it was put aside.
    pub reason: String,
    /// When.
    pub parked_at: Timestamp,
}

/// Which parked events of a destination are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those of one key.
    Key {
        /// Its topic.
        topic: String,
        /// The key.
        key: String,
    },
    /// One of them; where its key's order is kept, those before it are sent again too.
    One(Position),
}

/// Which page of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParkedPage {
    /// Only positions after this one.
    pub after: Position,
    /// At most this many.
    pub limit: usize,
}
