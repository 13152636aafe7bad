//! The outbox of a store: one type for every one this program can open.

use hapax::{
    Fence, Owner, StoreError,
    postgres::{
        self,
        tail::{Tail, TailError, TailOptions},
    },
    sqlite,
};
use hapax_core::outbox::{
    Destination, Lag, Lane, Lease, Leases, Look, Outbox, Park, Parked, ParkedPage, Progress,
    Registered, Retired, Seen, Selection, Start, Writer,
};

use super::{
    Access, Address, AnyStore, OpenError,
    open::{in_postgres, open_sqlite},
};

/// Opens the outbox at this address; `None` where nothing can be emitted.
pub(crate) async fn open_outbox(
    address: &Address,
    access: Access,
) -> Result<Option<AnyOutbox>, OpenError> {
    match address {
        Address::Memory => Ok(None),
        Address::Sqlite(path) => Ok(Some(AnyOutbox::Sqlite(open_sqlite(path, access).await?))),
        Address::Postgres(config) => {
            let connect = |migrate| {
                let options = postgres::OutboxOptions { migrate, ..Default::default() };
                postgres::Outbox::connect(config, options)
            };
            Ok(Some(AnyOutbox::Postgres(in_postgres(access, connect).await?)))
        }
    }
}

/// The outbox of a store that is open already; `None` where nothing can be emitted.
pub(crate) async fn outbox_of(
    store: &AnyStore,
    address: &Address,
) -> Result<Option<AnyOutbox>, OpenError> {
    match store {
        AnyStore::Sqlite(store) => Ok(Some(AnyOutbox::Sqlite(store.clone()))),
        AnyStore::Memory(_) | AnyStore::Postgres(_) => open_outbox(address, Access::Keep).await,
    }
}

/// Any outbox this program can open. Clones share it.
#[derive(Debug, Clone)]
pub(crate) enum AnyOutbox {
    Sqlite(sqlite::Store),
    Postgres(postgres::Outbox),
    Followed(Tail),
}

impl AnyOutbox {
    /// The same, following the server's log; `None` where there is no such log.
    pub(crate) async fn follow(self, address: &Address) -> Result<Option<Self>, TailError> {
        match (self, address) {
            (Self::Postgres(outbox), Address::Postgres(config)) => {
                let followed = Tail::follow(outbox, config, TailOptions::default()).await?;
                Ok(Some(Self::Followed(followed)))
            }
            (_, _) => Ok(None),
        }
    }
}

/// Does the same with whichever outbox it is.
macro_rules! each {
    ($any:expr, $outbox:ident => $call:expr) => {
        match $any {
            AnyOutbox::Sqlite($outbox) => $call,
            AnyOutbox::Postgres($outbox) => $call,
            AnyOutbox::Followed($outbox) => $call,
        }
    };
}

impl Outbox for AnyOutbox {
    async fn register(&self, destination: Destination, start: Start) -> Result<(), StoreError> {
        each!(self, outbox => outbox.register(destination, start).await)
    }

    async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        each!(self, outbox => outbox.remove(name).await)
    }

    async fn destinations(&self) -> Result<Vec<Registered>, StoreError> {
        each!(self, outbox => outbox.destinations().await)
    }

    async fn set_paused(&self, name: &str, paused: bool) -> Result<bool, StoreError> {
        each!(self, outbox => outbox.set_paused(name, paused).await)
    }

    async fn lease(&self, lease: Lease) -> Result<Option<Leases>, StoreError> {
        each!(self, outbox => outbox.lease(lease).await)
    }

    async fn release(
        &self,
        destination: &str,
        owner: Owner,
        lanes: Vec<(Lane, Fence)>,
    ) -> Result<(), StoreError> {
        each!(self, outbox => outbox.release(destination, owner, lanes).await)
    }

    async fn leave(&self, destination: &str, owner: Owner) -> Result<(), StoreError> {
        each!(self, outbox => outbox.leave(destination, owner).await)
    }

    async fn look(&self, destination: &str, look: Look) -> Result<Option<Seen>, StoreError> {
        each!(self, outbox => outbox.look(destination, look).await)
    }

    async fn writers(&self) -> Result<Vec<Writer>, StoreError> {
        each!(self, outbox => outbox.writers().await)
    }

    async fn acknowledge(
        &self,
        destination: &str,
        progress: Progress,
    ) -> Result<Vec<Lane>, StoreError> {
        each!(self, outbox => outbox.acknowledge(destination, progress).await)
    }

    async fn park(&self, park: Park) -> Result<bool, StoreError> {
        each!(self, outbox => outbox.park(park).await)
    }

    async fn parked(
        &self,
        destination: &str,
        selection: Selection,
        page: ParkedPage,
    ) -> Result<Vec<Parked>, StoreError> {
        each!(self, outbox => outbox.parked(destination, selection, page).await)
    }

    async fn replay(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        each!(self, outbox => Outbox::replay(outbox, destination, selection).await)
    }

    async fn forget(&self, destination: &str, selection: Selection) -> Result<usize, StoreError> {
        each!(self, outbox => outbox.forget(destination, selection).await)
    }

    async fn lag(&self, destination: &str) -> Result<Option<Lag>, StoreError> {
        each!(self, outbox => outbox.lag(destination).await)
    }

    async fn retire(&self, limit: usize) -> Result<Retired, StoreError> {
        each!(self, outbox => outbox.retire(limit).await)
    }

    fn ring(&self) {
        each!(self, outbox => outbox.ring());
    }

    async fn rung(&self) {
        each!(self, outbox => outbox.rung().await);
    }
}
