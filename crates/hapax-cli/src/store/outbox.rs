//! The outbox of a store: one type for every one this program can open.

use std::sync::Arc;

use hapax::{
    Encryption, EncryptionError,
    encryption::TenantKeys,
    postgres::{
        self,
        tail::{Tail, TailError, TailOptions},
    },
    sqlite,
};
use hapax_core::{
    forward_outbox,
    outbox::{EventOpener, OutboxAdmin, OutboxLog},
};

use super::{Access, OpenError, OpenStore, StoreAddress};

/// Opens the outbox at this address; `None` where nothing can be emitted.
pub(crate) async fn open_outbox(
    address: &StoreAddress,
    access: Access,
) -> Result<Option<AnyOutbox>, OpenError> {
    match address {
        StoreAddress::Memory => Ok(None),
        StoreAddress::Sqlite(path) => {
            Ok(Some(AnyOutbox::Sqlite(hapax::open::sqlite(path, access).await?)))
        }
        StoreAddress::Postgres(address) => {
            let connect = |migrate| {
                let options = postgres::OutboxOptions { migrate, ..Default::default() };
                postgres::Outbox::connect(address, options)
            };
            Ok(Some(AnyOutbox::Postgres(hapax::open::postgres(access, connect).await?)))
        }
    }
}

/// The outbox of a store that is open already; `None` where nothing can be emitted.
pub(crate) async fn outbox_of(
    store: &OpenStore,
    address: &StoreAddress,
) -> Result<Option<AnyOutbox>, OpenError> {
    match store {
        OpenStore::Sqlite(store) => Ok(Some(AnyOutbox::Sqlite(store.clone()))),
        OpenStore::Memory(_) | OpenStore::Postgres(_) => open_outbox(address, Access::Keep).await,
    }
}

/// What opens the encrypted events of a store, which keeps the keys of their tenants.
pub(crate) async fn opener(
    store: OpenStore,
    encryption: Encryption,
) -> Result<Arc<dyn EventOpener>, EncryptionError> {
    Ok(Arc::new(TenantKeys::new(store, encryption).await?))
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
    pub(crate) async fn follow(self, address: &StoreAddress) -> Result<Option<Self>, TailError> {
        match (self, address) {
            (Self::Postgres(outbox), StoreAddress::Postgres(address)) => {
                let followed = Tail::follow(outbox, address, TailOptions::default()).await?;
                Ok(Some(Self::Followed(followed)))
            }
            (_, _) => Ok(None),
        }
    }
}

/// Does the same with whichever outbox it is.
macro_rules! each {
    ($any:ident, $method:ident($($argument:ident),*)) => {
        each!($any, outbox => outbox.$method($($argument),*).await)
    };
    ($any:ident, $outbox:ident => $call:expr) => {
        match $any {
            AnyOutbox::Sqlite($outbox) => $call,
            AnyOutbox::Postgres($outbox) => $call,
            AnyOutbox::Followed($outbox) => $call,
        }
    };
}

impl OutboxLog for AnyOutbox {
    forward_outbox! {
        each: register set_paused lease release leave look writers acknowledge park retire
    }

    fn ring(&self) {
        each!(self, outbox => outbox.ring());
    }

    async fn rung(&self) {
        each!(self, outbox => outbox.rung().await);
    }
}

impl OutboxAdmin for AnyOutbox {
    forward_outbox! { each: remove destinations parked replay forget lag }
}
