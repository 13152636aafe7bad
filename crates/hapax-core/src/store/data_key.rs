//! The contract of a store that keeps the data keys of tenants, and how one becomes columns.
//!
//! A data key encrypts what is stored for one tenant. A store sees it only wrapped: encrypted under a
//! master key that is kept elsewhere.

use bytes::Bytes;

use super::StoreError;
use crate::{
    codec::Unreadable,
    limits::{MASTER_KEY_NAME_BYTES_MAX, WRAPPED_KEY_BYTES_MAX},
    note::Reason,
    operation::Tenant,
    time::Timestamp,
};

/// Keeps the wrapped data keys of tenants beside the records: a store that does can be encrypted.
///
/// Every write is durable when it returns, and none waits for another.
pub trait KeyStorage: Send + Sync + 'static {
    /// Every data key of a tenant, those that were erased included, in order of their version.
    fn data_keys(
        &self,
        tenant: Tenant,
    ) -> impl Future<Output = Result<TenantDataKeys, StoreError>> + Send;

    /// Keeps a key, unless its tenant has one of this version; says whether it was kept.
    fn add_data_key(
        &self,
        key: DataKeyId,
        wrapped: WrappedKey,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Replaces how a key is wrapped, if it is still wrapped as `seen`; says whether it was replaced.
    fn rewrap_data_key(
        &self,
        key: DataKeyId,
        seen: WrappedKey,
        wrapped: WrappedKey,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Forgets every key of a tenant, and keeps who did that, when and why; says how many there were.
    fn erase_data_keys(
        &self,
        tenant: Tenant,
        reason: Reason,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// The keys of all tenants, in order of tenant and version, up to `limit` of them.
    fn list_data_keys(
        &self,
        after: Option<DataKeyId>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<StoredDataKey>, StoreError>> + Send;

    /// Which master keys wrap the keys that are kept.
    fn master_keys(&self) -> impl Future<Output = Result<Vec<MasterKeyUse>, StoreError>> + Send;
}

/// Which data key is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataKeyId {
    /// Whose it is.
    pub tenant: Tenant,
    /// Which of the tenant's keys, counted from one. No version is used twice.
    pub version: u32,
}

/// A data key as its master key wraps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// The name of the master key.
    pub master: String,
    /// What only that master key unwraps.
    pub bytes: Bytes,
}

/// The data keys of one tenant.
#[derive(Debug, Clone)]
pub struct TenantDataKeys {
    /// The store's clock.
    pub now: Timestamp,
    /// In order of their version.
    pub keys: Vec<StoredDataKey>,
}

/// What is stored of a data key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDataKey {
    /// Which one.
    pub id: DataKeyId,
    /// When it was made.
    pub created_at: Timestamp,
    /// What became of it.
    pub state: DataKeyState,
}

/// What became of a data key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataKeyState {
    /// It is there.
    Kept(WrappedKey),
    /// It was forgotten, and nothing that it encrypted can be read again.
    Erased {
        /// When.
        at: Timestamp,
        /// By whom, and why.
        reason: Reason,
    },
}

/// How many data keys a master key wraps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterKeyUse {
    /// The name of the master key.
    pub master: String,
    /// How many keys.
    pub keys: u64,
}

/// The version of stored data keys this code writes. It reads every version up to it.
pub const DATA_KEY_FORMAT: i16 = 1;

/// A data key as a store keeps it: plain columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataKeyRow {
    /// The tenant.
    pub tenant: String,
    /// Which of the tenant's keys.
    pub version: i64,
    /// The version of the row.
    pub format: i16,
    /// When it was made, in microseconds.
    pub created_at: i64,
    /// The name of the master key; empty where it was erased.
    pub master: String,
    /// The wrapped key; nothing where it was erased.
    pub wrapped: Option<Bytes>,
    /// When it was erased, in microseconds; zero where it was not.
    pub erased_at: i64,
    /// Who erased it; empty where nobody did.
    pub erased_by: String,
    /// Why; empty where nobody did.
    pub erased_why: String,
}

impl DataKeyRow {
    /// The row that keeps this key.
    pub fn seal(key: &StoredDataKey) -> Self {
        let mut row = Self {
            tenant: key.id.tenant.as_str().to_owned(),
            version: i64::from(key.id.version),
            format: DATA_KEY_FORMAT,
            created_at: key.created_at.as_micros(),
            master: String::new(),
            wrapped: None,
            erased_at: 0,
            erased_by: String::new(),
            erased_why: String::new(),
        };
        match &key.state {
            DataKeyState::Kept(wrapped) => {
                row.master.clone_from(&wrapped.master);
                row.wrapped = Some(wrapped.bytes.clone());
            }
            DataKeyState::Erased { at, reason } => {
                row.erased_at = at.as_micros();
                reason.who().clone_into(&mut row.erased_by);
                reason.why().clone_into(&mut row.erased_why);
            }
        }
        row
    }

    /// The key kept in this row; what no version ever wrote is refused.
    pub fn open(self) -> Result<StoredDataKey, Unreadable> {
        let impossible = |column, value: &dyn ToString| Unreadable::Impossible {
            column,
            value: value.to_string(),
        };
        if self.format > DATA_KEY_FORMAT {
            return Err(Unreadable::TooNew { found: self.format.into() });
        }
        if self.format != DATA_KEY_FORMAT {
            return Err(impossible("format", &self.format));
        }
        let tenant = Tenant::parse(&self.tenant);
        let tenant = tenant.map_err(|refusal| impossible("tenant", &refusal))?;
        let version = u32::try_from(self.version).ok().filter(|version| *version > 0);
        let version = version.ok_or_else(|| impossible("version", &self.version))?;
        let state = match self.wrapped {
            Some(bytes) => {
                let is_named = (1..=MASTER_KEY_NAME_BYTES_MAX).contains(&self.master.len());
                if !is_named || bytes.is_empty() || bytes.len() > WRAPPED_KEY_BYTES_MAX {
                    return Err(impossible("wrapped", &bytes.len()));
                }
                DataKeyState::Kept(WrappedKey { master: self.master, bytes })
            }
            None => DataKeyState::Erased {
                at: Timestamp::from_micros(self.erased_at),
                reason: Reason::new(&self.erased_by, &self.erased_why)
                    .map_err(|refusal| impossible("erased_why", &refusal))?,
            },
        };
        let created_at = Timestamp::from_micros(self.created_at);
        Ok(StoredDataKey { id: DataKeyId { tenant, version }, created_at, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(state: DataKeyState) -> StoredDataKey {
        let id = DataKeyId { tenant: Tenant::parse("acme").unwrap(), version: 3 };
        StoredDataKey { id, created_at: Timestamp::from_micros(5), state }
    }

    fn kept() -> StoredDataKey {
        let bytes = Bytes::from_static(b"wrapped");
        key(DataKeyState::Kept(WrappedKey { master: "local:1".to_owned(), bytes }))
    }

    #[test]
    fn a_key_comes_back_as_it_was_kept_or_erased() {
        let reason = Reason::new("ada", "they left").unwrap();
        let erased = key(DataKeyState::Erased { at: Timestamp::from_micros(9), reason });
        for key in [kept(), erased] {
            assert_eq!(DataKeyRow::seal(&key).open(), Ok(key));
        }
    }

    #[test]
    fn what_no_version_ever_wrote_is_refused() {
        let row = DataKeyRow::seal(&kept());
        let refused = [
            DataKeyRow { format: DATA_KEY_FORMAT + 1, ..row.clone() },
            DataKeyRow { format: 0, ..row.clone() },
            DataKeyRow { version: 0, ..row.clone() },
            DataKeyRow { version: i64::MAX, ..row.clone() },
            DataKeyRow { tenant: String::new(), ..row.clone() },
            DataKeyRow { master: String::new(), ..row.clone() },
            DataKeyRow { wrapped: Some(Bytes::new()), ..row.clone() },
            DataKeyRow { wrapped: None, ..row },
        ];
        for row in refused {
            assert!(row.clone().open().is_err(), "{row:?}");
        }
    }
}
