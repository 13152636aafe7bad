use std::{io, path::PathBuf};

use hapax::{EncryptionError, InvalidReason, StoreError, encryption::InvalidMasterKey};
use hapax_gateway::config::ConfigError;

use crate::store::{InvalidAddress, OpenError};

/// Why a task with the keys of a store was not done, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncryptionTaskError {
    #[error("the configuration cannot be used:\n{0}")]
    Config(#[from] ConfigError),
    #[error("--store or HAPAX_STORE is no store's address")]
    Address(#[from] InvalidAddress),
    #[error("a store in memory has no keys that outlive its process")]
    Memory,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the data keys could not be read or written")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    #[error("cannot read the master key in {}", path.display())]
    KeyFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the master key in {} cannot be used", path.display())]
    InvalidKey {
        path: PathBuf,
        #[source]
        source: InvalidMasterKey,
    },
    #[error(
        "no master key is named; give --master-key-file, or --config with `[encryption]` in it"
    )]
    NoMasterKey,
    #[error("--who or --why cannot be kept")]
    Reason(#[from] InvalidReason),
    #[error(
        "nothing was erased: the tenant has no data keys here; `hapax keys list` shows how tenants are \
         written, and what was stored before encryption was on has no key"
    )]
    NothingToErase,
    #[error("nothing was erased: you did not say yes")]
    Declined,
    #[error("cannot print the answer")]
    Print(#[from] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}
