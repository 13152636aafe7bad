//! Events that are published if, and only if, a transaction commits: written by [`emit`], and read
//! by relays through the store.
//!
//! SQLite has one writer at a time, so positions are in the order of the commits and there are no
//! gaps but those that a retirement left. Events that are final for every destination are deleted.
//!
//! - `emit`: writing; `look`: reading; `row`: an event as columns;
//! - `lanes`: leases and progress; `parked`: what was put aside; `destinations`: who wants what, and
//!   how far behind it is.

mod destinations;
mod emit;
mod lanes;
mod look;
mod parked;
mod row;

use hapax_core::{
    Fence, Owner, StoreError,
    outbox::{
        Destination, Lag, Lane, LaneProgress, Leases, Look, OutboxAdmin, OutboxLog, Park, Parked,
        ParkedPage, Registered, RelayLease, Retired, Seen, Selection, Start, Writer,
    },
};

pub use self::emit::emit;
#[cfg(feature = "sqlx")]
pub(crate) use self::emit::{INSERT, draw_id, headers};
use crate::store::Store;

/// The store as the log a relay reads.
///
/// A ring is heard in this process alone: relays of other processes find what is new when they look.
impl OutboxLog for Store {
    async fn register(&self, destination: Destination, start: Start) -> Result<(), StoreError> {
        self.change(move |connection, _| destinations::register(connection, &destination, start))
            .await
    }

    async fn set_paused(&self, name: &str, paused: bool) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.change(move |connection, _| destinations::set_paused(connection, &name, paused)).await
    }

    async fn lease(&self, lease: RelayLease) -> Result<Option<Leases>, StoreError> {
        self.change(move |connection, now| lanes::lease(connection, now, &lease)).await?
    }

    async fn release(
        &self,
        destination: &str,
        owner: Owner,
        lanes: Vec<(Lane, Fence)>,
    ) -> Result<(), StoreError> {
        let name = destination.to_owned();
        self.change(move |connection, _| lanes::release(connection, &name, owner, &lanes)).await
    }

    async fn leave(&self, destination: &str, owner: Owner) -> Result<(), StoreError> {
        let name = destination.to_owned();
        self.change(move |connection, _| lanes::leave(connection, &name, owner)).await
    }

    async fn look(&self, destination: &str, look: Look) -> Result<Option<Seen>, StoreError> {
        let name = destination.to_owned();
        self.look_up(move |connection, now| look::look(connection, now, &name, &look)).await?
    }

    async fn writers(&self) -> Result<Vec<Writer>, StoreError> {
        Ok(Vec::new())
    }

    async fn acknowledge(
        &self,
        destination: &str,
        progress: LaneProgress,
    ) -> Result<Vec<Lane>, StoreError> {
        let name = destination.to_owned();
        self.change(move |connection, _| lanes::acknowledge(connection, &name, &progress)).await
    }

    async fn park(&self, park: Park) -> Result<bool, StoreError> {
        self.change(move |connection, now| parked::park(connection, now, &park)).await?
    }

    async fn retire(&self, limit: usize) -> Result<Retired, StoreError> {
        self.change(move |connection, _| destinations::retire(connection, limit)).await
    }

    fn ring(&self) {
        self.bell().ring();
    }

    async fn rung(&self) {
        self.bell().rung().await;
    }
}

/// The store as an outbox that people look after.
impl OutboxAdmin for Store {
    async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.change(move |connection, _| destinations::remove(connection, &name)).await
    }

    async fn destinations(&self) -> Result<Vec<Registered>, StoreError> {
        self.look_up(|connection, _| destinations::list(connection)).await?
    }

    async fn parked(
        &self,
        destination: &str,
        selection: Selection,
        page: ParkedPage,
    ) -> Result<Vec<Parked>, StoreError> {
        let name = destination.to_owned();
        self.look_up(move |connection, _| parked::list(connection, &name, &selection, page)).await?
    }

    async fn replay(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        let name = destination.to_owned();
        let work = move |connection: &_, _| parked::replay(connection, &name, &selection);
        let replayed = self.change(work).await?;
        self.bell().ring();
        Ok(replayed)
    }

    async fn forget(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        let name = destination.to_owned();
        self.change(move |connection, _| parked::forget(connection, &name, &selection)).await
    }

    async fn lag(&self, destination: &str) -> Result<Option<Lag>, StoreError> {
        let name = destination.to_owned();
        self.look_up(move |connection, now| destinations::lag(connection, now, &name)).await?
    }
}
