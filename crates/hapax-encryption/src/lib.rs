//! Encryption at rest for any Hapax store.
//!
//! [`EncryptedStore`] stands around a store and seals what users sent and were answered: outcomes, stored
//! requests, results of steps. What the machine decides by stays clear: ids, names, fingerprints, states,
//! fences, times, and the status of an outcome.
//!
//! - `store`: [`EncryptedStore`], and `contents`, what of a write or a record is sealed;
//! - `tenant_keys`: [`TenantKeys`], the same keys for what is no record; `event`: [`EventSealer`], events before
//!   they are emitted; `outbox`: [`OpenedOutbox`], what people are shown of them;
//! - `inbox`: [`EncryptedInbox`], what consumers keep of messages; `inbox_admin`, what people are shown of it;
//! - `sealing`: AES-256-GCM with a key of its own for every sealing; `binding`, what ciphertext is bound to;
//! - `data_keys` and `key_ring`: the keys of tenants, made, unwrapped and remembered;
//! - `master_key`: [`MasterKey`], which wraps those, from a file ([`LocalMasterKey`]) or in a key service;
//! - `file_key`: [`FileKey`], the same sealing for a file that is no store, such as a client's journal;
//! - `encryption`: [`Encryption`], what a store is encrypted with; `rewrap`, another master key.
//!
//! ```
//! use hapax_core::{Salt, Timestamp, memory};
//! use hapax_encryption::{EncryptedStore, Encryption, LocalMasterKey};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let master = LocalMasterKey::parse(&"5f".repeat(32))?;
//! let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
//! let store = EncryptedStore::new(store, Encryption::new(master)).await?;
//! # drop(store);
//! # Ok(())
//! # }
//! ```

mod binding;
mod contents;
mod data_keys;
mod encryption;
mod event;
mod file_key;
mod inbox;
mod inbox_admin;
mod key_ring;
mod master_key;
mod outbox;
mod rewrap;
mod sealing;
mod store;
mod tenant_keys;

#[cfg(feature = "kms")]
pub use self::master_key::{InvalidKmsKey, KmsCredentials, KmsMasterKey, KmsOptions};
pub use self::{
    encryption::{Encryption, EncryptionError, KEYS_SEEN_FOR, ROTATE_AFTER},
    event::{EventNotSealed, EventSealer},
    file_key::{FileKey, FileKeyError},
    inbox::EncryptedInbox,
    master_key::{
        DataKeyBytes, InvalidMasterKey, LocalMasterKey, MasterKey, MasterKeyError, Wrapping,
    },
    outbox::OpenedOutbox,
    rewrap::{Rewrapped, rewrap},
    sealing::{NotOpened, NotSealed, is_sealed},
    store::EncryptedStore,
    tenant_keys::TenantKeys,
};
