//! What a backend does for a relay.

use std::time::Duration;

use super::{
    destination::{Destination, Start},
    gaps::Writer,
    parked::Park,
    reader::Reader,
    reading::{EventBatch, LaneHeld, LaneProgress, Look, ReadLimits, Seen},
    stored_event::{Lane, Position},
};
use crate::{
    limits::OUTBOX_SEGMENT_POSITIONS,
    record::{Fence, Owner},
    store::StoreError,
    time::Timestamp,
};

/// A log of events, the progress of each destination in it, and what was put aside: what a relay
/// needs of it. What people do about it is [`OutboxAdmin`](super::OutboxAdmin).
///
/// Proven by `hapax_verify::conformance::outbox`. Errors mean what they mean for a
/// [`Store`](crate::Store). Where a destination is named that is not registered, the answer is
/// `None`, or that nothing was changed.
pub trait OutboxLog: Send + Sync + 'static {
    /// Registers a destination, or changes the topics of one that is there; its progress is kept.
    fn register(
        &self,
        destination: Destination,
        start: Start,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Stops or resumes sending to a destination; whether it is there. Relays hear of it with their
    /// next lease.
    fn set_paused(
        &self,
        name: &str,
        paused: bool,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Keeps a relay alive, renews its lanes and takes its share of those nobody alive has, by
    /// [`plan`](super::plan). A lane's fence grows whenever its owner changes.
    fn lease(
        &self,
        lease: RelayLease,
    ) -> impl Future<Output = Result<Option<Leases>, StoreError>> + Send;

    /// Gives lanes back, as far as they are still under these fences.
    fn release(
        &self,
        destination: &str,
        owner: Owner,
        lanes: Vec<(Lane, Fence)>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Ends a relay: gives back all it has, so that others need not wait for its lease to end.
    fn leave(
        &self,
        destination: &str,
        owner: Owner,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Shows what a reader asks for, in one snapshot. It is not older than the call where the look
    /// [decides](Look::decides).
    ///
    /// A row says `held` where parked events of its key hold it; the event of a row that is itself
    /// parked, or not of a wanted topic or lane, is left out.
    fn look(
        &self,
        destination: &str,
        look: Look,
    ) -> impl Future<Output = Result<Option<Seen>, StoreError>> + Send;

    /// Everybody who may have taken a position and has not ended, as of now.
    fn writers(&self) -> impl Future<Output = Result<Vec<Writer>, StoreError>> + Send;

    /// Stores how far lanes are final and removes parked events that were sent, where the fence is
    /// still the lane's; which lanes are no longer under theirs. A low never goes back.
    fn acknowledge(
        &self,
        destination: &str,
        progress: LaneProgress,
    ) -> impl Future<Output = Result<Vec<Lane>, StoreError>> + Send;

    /// Puts events aside; whether the fence was still the lane's. Otherwise nothing is changed.
    ///
    /// An event that is parked already is parked again, to be sent again only when somebody asks.
    /// One that [follows](super::Hold::Follow) is to be sent again if those it follows are, or if
    /// there are none left.
    fn park(&self, park: Park) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Removes up to `limit` events (or one segment, where the log has segments) that are final for
    /// every destination. Where there is no destination nothing is.
    fn retire(&self, limit: usize) -> impl Future<Output = Result<Retired, StoreError>> + Send;

    /// Says that something was emitted, to relays in this and other processes; after the commit,
    /// and never in it. Cheap: rings of a moment are announced together.
    fn ring(&self);

    /// Ends when something may have been emitted. A hint: it may come early, late or never.
    fn rung(&self) -> impl Future<Output = ()> + Send;
}

/// Reads once: looks, takes what is seen, and finds out about gaps where that is worth it. `None`
/// if the destination is not registered.
pub async fn poll<O: OutboxLog>(
    outbox: &O,
    destination: &str,
    reader: &mut Reader,
    limits: ReadLimits,
) -> Result<Option<EventBatch>, StoreError> {
    let Some(seen) = outbox.look(destination, reader.look(limits)).await? else { return Ok(None) };
    let now = seen.now;
    let batch = reader.take(seen);
    // What was read is delivered whether or not this can be found out now.
    if reader.inquire(now)
        && let Ok(writers) = outbox.writers().await
    {
        reader.listed(&writers);
    }
    Ok(Some(batch))
}

/// The segment of a position, counted from zero and never reused.
pub fn segment(position: Position) -> i64 {
    position.div_euclid(OUTBOX_SEGMENT_POSITIONS)
}

/// A sign of life of a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayLease {
    /// What it serves.
    pub destination: String,
    /// Its name.
    pub owner: Owner,
    /// For how long it is trusted to be alive.
    pub span: Duration,
}

/// What a relay has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leases {
    /// The store's clock.
    pub now: Timestamp,
    /// Until when it may send: less than the span from when it asked.
    pub until: Timestamp,
    /// Whether sending was stopped.
    pub paused: bool,
    /// Its lanes, in order.
    pub lanes: Vec<Leased>,
    /// How many of them it should finish with and give back.
    pub give_back: usize,
}

/// A lane that a relay has.
pub type Leased = LaneHeld;

/// What was retired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retired {
    /// How many events.
    pub events: u64,
}
