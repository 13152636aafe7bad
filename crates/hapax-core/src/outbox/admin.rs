//! What a backend does for the people who look after it.

use std::time::Duration;

use super::{
    destination::Destination,
    log::OutboxLog,
    parked::{Parked, ParkedPage, Selection},
    stored_event::{Lane, Position},
};
use crate::{record::Owner, store::StoreError, time::Timestamp};

/// An outbox as an operator sees it: its destinations, how far behind they are, and what was put
/// aside.
///
/// Errors and unknown destinations mean what they mean for an [`OutboxLog`].
pub trait OutboxAdmin: OutboxLog {
    /// Forgets a destination, its progress and what is parked for it; whether it was there.
    fn remove(&self, name: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Every destination, in order of name.
    fn destinations(&self) -> impl Future<Output = Result<Vec<Registered>, StoreError>> + Send;

    /// What is parked for a destination, in order of position.
    fn parked(
        &self,
        destination: &str,
        selection: Selection,
        page: ParkedPage,
    ) -> impl Future<Output = Result<Vec<Parked>, StoreError>> + Send;

    /// Has parked events sent again, each key in order and before its later events; how many.
    fn replay(
        &self,
        destination: &str,
        selection: Selection,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Removes parked events for good; how many.
    fn forget(
        &self,
        destination: &str,
        selection: Selection,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// How far a destination is behind.
    fn lag(
        &self,
        destination: &str,
    ) -> impl Future<Output = Result<Option<Lag>, StoreError>> + Send;
}

/// A registered destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// Its name and topics.
    pub destination: Destination,
    /// Whether sending was stopped.
    pub paused: bool,
}

/// How far a destination is behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lag {
    /// The store's clock.
    pub now: Timestamp,
    /// Whether sending was stopped.
    pub paused: bool,
    /// How many relays serve it.
    pub relays: usize,
    /// How many events are parked.
    pub parked: u64,
    /// For each lane.
    pub lanes: Vec<LaneLag>,
}

impl Lag {
    /// How many events are not final.
    pub fn events(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.events).sum()
    }

    /// How long the oldest of them has waited.
    pub fn age(&self) -> Duration {
        let oldest = self.lanes.iter().filter_map(|lane| lane.oldest).min();
        oldest.map_or(Duration::ZERO, |at| self.now.after(at))
    }
}

/// How far a lane is behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneLag {
    /// Which one.
    pub lane: Lane,
    /// Whose it is, if somebody alive has it.
    pub owner: Option<Owner>,
    /// Up to where it is final.
    pub low: Position,
    /// How many wanted events lie above that.
    pub events: u64,
    /// When the oldest of them was written.
    pub oldest: Option<Timestamp>,
}
