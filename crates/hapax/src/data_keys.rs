//! The data keys in whichever store is open.

use hapax_core::{
    Reason, StoreError, Tenant,
    store::{DataKeyId, KeyStorage, MasterKeyUse, StoredDataKey, TenantDataKeys, WrappedKey},
};

use crate::open::OpenStore;

/// Does the same with whichever store it is.
macro_rules! each {
    ($open:ident, $call:ident($($argument:ident),*)) => {
        match $open {
            OpenStore::Memory(store) => KeyStorage::$call(store, $($argument),*).await,
            #[cfg(feature = "sqlite")]
            OpenStore::Sqlite(store) => KeyStorage::$call(store, $($argument),*).await,
            #[cfg(feature = "postgres")]
            OpenStore::Postgres(store) => KeyStorage::$call(store, $($argument),*).await,
        }
    };
}

impl KeyStorage for OpenStore {
    async fn data_keys(&self, tenant: Tenant) -> Result<TenantDataKeys, StoreError> {
        each!(self, data_keys(tenant))
    }

    async fn add_data_key(&self, key: DataKeyId, wrapped: WrappedKey) -> Result<bool, StoreError> {
        each!(self, add_data_key(key, wrapped))
    }

    async fn rewrap_data_key(
        &self,
        key: DataKeyId,
        seen: WrappedKey,
        wrapped: WrappedKey,
    ) -> Result<bool, StoreError> {
        each!(self, rewrap_data_key(key, seen, wrapped))
    }

    async fn erase_data_keys(&self, tenant: Tenant, reason: Reason) -> Result<usize, StoreError> {
        each!(self, erase_data_keys(tenant, reason))
    }

    async fn list_data_keys(
        &self,
        after: Option<DataKeyId>,
        limit: usize,
    ) -> Result<Vec<StoredDataKey>, StoreError> {
        each!(self, list_data_keys(after, limit))
    }

    async fn master_keys(&self) -> Result<Vec<MasterKeyUse>, StoreError> {
        each!(self, master_keys())
    }
}
