//! What a store is encrypted with.

use std::{sync::Arc, time::Duration};

use hapax_core::{StoreError, store::KeyStorage};

use crate::master_key::MasterKey;

/// How long a process uses a tenant's data keys without looking whether they were erased.
pub const KEYS_SEEN_FOR: Duration = Duration::from_secs(30);

/// What a store is encrypted with: a master key, those it follows, and how long data keys are used.
///
/// ```
/// use std::sync::Arc;
///
/// use hapax_encryption::{Encryption, LocalMasterKey};
///
/// let (new, old) = ([2; 32], [1; 32]);
/// // Data keys that the old master key wrapped are still read, until they are rewrapped.
/// let encryption = Encryption::new(LocalMasterKey::from_bytes(&new))
///     .following(LocalMasterKey::from_bytes(&old));
/// assert_eq!(encryption.previous.len(), 1);
/// # drop(Arc::new(encryption));
/// ```
#[derive(Debug, Clone)]
pub struct Encryption {
    /// Wraps new data keys.
    pub master: Arc<dyn MasterKey>,
    /// Unwrap what they wrapped before.
    pub previous: Vec<Arc<dyn MasterKey>>,
    /// How long a tenant's data key seals before a new one does; for ever if `None`. All of them open.
    pub rotate_after: Option<Duration>,
}

/// How long a data key seals, where nobody says.
pub const ROTATE_AFTER: Duration = Duration::from_secs(90 * 24 * 60 * 60);

impl Encryption {
    /// Under this master key, with data keys that are used for [`ROTATE_AFTER`].
    pub fn new(master: impl MasterKey) -> Self {
        let master = Arc::new(master);
        Self { master, previous: Vec::new(), rotate_after: Some(ROTATE_AFTER) }
    }

    /// The same, after another master key: what that one wrapped can be unwrapped.
    #[must_use]
    pub fn following(mut self, previous: impl MasterKey) -> Self {
        self.previous.push(Arc::new(previous));
        self
    }

    /// The master key with this name, if it was given.
    pub(crate) fn master_named(&self, name: &str) -> Option<&Arc<dyn MasterKey>> {
        let mut given = std::iter::once(&self.master).chain(&self.previous);
        given.find(|master| master.name() == name)
    }

    /// Refuses a store whose data keys were wrapped by a master key that was not given.
    pub async fn fits(&self, storage: &impl KeyStorage) -> Result<(), EncryptionError> {
        let used = storage.master_keys().await?;
        let missing = used.into_iter().find(|used| self.master_named(&used.master).is_none());
        match missing {
            Some(used) => {
                let given = self.master.name().to_owned();
                Err(EncryptionError::OtherMaster { name: used.master, keys: used.keys, given })
            }
            None => Ok(()),
        }
    }
}

/// Why a store cannot be encrypted, or its keys not be rewrapped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionError {
    /// Data keys were wrapped by a master key that was not given.
    #[error(
        "{keys} data keys of this store are wrapped by the master key {name}, and the one given is {given}; \
         give that one, or name it as a previous master key until `hapax encryption rewrap` has run"
    )]
    OtherMaster {
        /// The name of the master key that is missing.
        name: String,
        /// How many keys need it.
        keys: u64,
        /// The name of the one that was given.
        given: String,
    },
    /// The store refused.
    #[error("the data keys cannot be read or written")]
    Store(#[from] StoreError),
    /// A master key did not do its part.
    #[error("a data key cannot be unwrapped or wrapped")]
    MasterKey(#[from] crate::master_key::MasterKeyError),
}
