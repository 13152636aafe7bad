use std::io::{self, Write};

use hapax_core::{
    Fence, Owner, StoreError,
    outbox::{
        Destination, Lag, Lane, Lease, Leases, Look, Outbox, Park, Parked, ParkedPage, Progress,
        Registered, Retired, Seen, Selection, Start, Writer,
    },
};

use super::between;
use crate::place::Doom;

/// An outbox whose relay may die right before and right after each call.
#[derive(Debug)]
pub struct WatchedOutbox<O> {
    outbox: O,
    doom: Doom,
}

impl<O: Outbox> WatchedOutbox<O> {
    /// The outbox, with that end awaiting its relay.
    pub fn new(outbox: O, doom: Doom) -> Self {
        Self { outbox, doom }
    }
}

impl<O: Outbox> Outbox for WatchedOutbox<O> {
    async fn register(&self, destination: Destination, start: Start) -> Result<(), StoreError> {
        let call = self.outbox.register(destination, start);
        between(&self.doom, "outbox.register.before", call, "outbox.register.after").await
    }

    async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        self.outbox.remove(name).await
    }

    async fn destinations(&self) -> Result<Vec<Registered>, StoreError> {
        self.outbox.destinations().await
    }

    async fn set_paused(&self, name: &str, paused: bool) -> Result<bool, StoreError> {
        self.outbox.set_paused(name, paused).await
    }

    async fn lease(&self, lease: Lease) -> Result<Option<Leases>, StoreError> {
        let call = self.outbox.lease(lease);
        between(&self.doom, "outbox.lease.before", call, "outbox.lease.after").await
    }

    async fn release(
        &self,
        destination: &str,
        owner: Owner,
        lanes: Vec<(Lane, Fence)>,
    ) -> Result<(), StoreError> {
        let call = self.outbox.release(destination, owner, lanes);
        between(&self.doom, "outbox.release.before", call, "outbox.release.after").await
    }

    async fn leave(&self, destination: &str, owner: Owner) -> Result<(), StoreError> {
        let call = self.outbox.leave(destination, owner);
        between(&self.doom, "outbox.leave.before", call, "outbox.leave.after").await
    }

    async fn look(&self, destination: &str, look: Look) -> Result<Option<Seen>, StoreError> {
        let call = self.outbox.look(destination, look);
        between(&self.doom, "outbox.look.before", call, "outbox.look.after").await
    }

    async fn writers(&self) -> Result<Vec<Writer>, StoreError> {
        let call = self.outbox.writers();
        between(&self.doom, "outbox.writers.before", call, "outbox.writers.after").await
    }

    async fn acknowledge(
        &self,
        destination: &str,
        progress: Progress,
    ) -> Result<Vec<Lane>, StoreError> {
        let call = self.outbox.acknowledge(destination, progress);
        between(&self.doom, "outbox.acknowledge.before", call, "outbox.acknowledge.after").await
    }

    async fn park(&self, park: Park) -> Result<bool, StoreError> {
        let told = format!("{park:?}");
        let call = self.outbox.park(park);
        let parked = between(&self.doom, "outbox.park.before", call, "outbox.park.after").await;
        // For whoever wants to know afterwards what a victim did: it goes to its log.
        let _ = writeln!(io::stderr(), "{told}: {parked:?}");
        parked
    }

    async fn parked(
        &self,
        destination: &str,
        selection: Selection,
        page: ParkedPage,
    ) -> Result<Vec<Parked>, StoreError> {
        self.outbox.parked(destination, selection, page).await
    }

    async fn replay(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        self.outbox.replay(destination, selection).await
    }

    async fn forget(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        self.outbox.forget(destination, selection).await
    }

    async fn lag(&self, destination: &str) -> Result<Option<Lag>, StoreError> {
        self.outbox.lag(destination).await
    }

    async fn retire(&self, limit: usize) -> Result<Retired, StoreError> {
        let call = self.outbox.retire(limit);
        between(&self.doom, "outbox.retire.before", call, "outbox.retire.after").await
    }

    fn ring(&self) {
        self.outbox.ring();
    }

    async fn rung(&self) {
        self.outbox.rung().await;
    }
}
