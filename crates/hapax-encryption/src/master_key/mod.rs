//! The key that wraps the data keys of tenants, kept anywhere but in the store.

#[cfg(feature = "kms")]
mod kms;
mod local;

use std::{fmt, pin::Pin};

use bytes::Bytes;
use hapax_core::store::DataKeyId;
use zeroize::Zeroizing;

#[cfg(feature = "kms")]
pub use self::kms::{InvalidKmsKey, KmsCredentials, KmsMasterKey, KmsOptions};
pub use self::local::{InvalidMasterKey, LocalMasterKey};

/// Wraps data keys, and unwraps what it wrapped: a key of this process, or a service that keeps one.
///
/// A wrapped key belongs to its tenant and its version: asked to unwrap it for another one, a master key
/// refuses.
pub trait MasterKey: Send + Sync + 'static {
    /// What the store calls it. Two keys never have the same name, and a key never has two.
    fn name(&self) -> &str;

    /// The data key, for the store to keep.
    fn wrap<'a>(&'a self, id: &'a DataKeyId, key: &'a DataKeyBytes) -> Wrapping<'a, Bytes>;

    /// The data key that was wrapped.
    fn unwrap<'a>(&'a self, id: &'a DataKeyId, wrapped: &'a [u8]) -> Wrapping<'a, DataKeyBytes>;
}

/// What a master key is doing.
pub type Wrapping<'a, T> = Pin<Box<dyn Future<Output = Result<T, MasterKeyError>> + Send + 'a>>;

/// A data key in the clear: wiped from memory when it is dropped.
pub type DataKeyBytes = Zeroizing<[u8; 32]>;

impl fmt::Debug for dyn MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MasterKey").field(&self.name()).finish()
    }
}

/// Why a master key did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MasterKeyError {
    /// Nobody answered; asking again later may help.
    #[error("the master key {name} cannot be reached")]
    Unavailable {
        /// Its name.
        name: String,
        /// What went wrong.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It refuses for good: the wrapped key is not one of its own, or was altered.
    #[error("the master key {name} does not unwrap this data key")]
    Refused {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
