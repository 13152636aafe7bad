use std::{
    io::{self, Write},
    process::ExitCode,
};

use hapax::{EncryptionError, StoreError};

use crate::{
    encryption::EncryptionTaskError,
    store::{InvalidAddress, OpenError},
};

/// Why a task with the outbox was not done, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutboxError {
    #[error("--store or HAPAX_STORE is no store's address")]
    Address(#[from] InvalidAddress),
    #[error("nothing can be emitted into a store in memory; give sqlite:PATH or postgres://...")]
    Memory,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Keys(#[from] EncryptionTaskError),
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    #[error("the outbox could not be read or changed")]
    Store(#[from] StoreError),
    #[error("nobody knows whether it was changed; look again before you try again")]
    Unconfirmed(#[source] StoreError),
    #[error("there is no destination {name:?}; see `hapax outbox list`")]
    Unknown { name: String },
    #[error("nothing is parked that was meant; see `hapax outbox parked`")]
    NothingParked,
    #[error("--key names no topic; write TOPIC/KEY, or give --topic too")]
    NoTopic,
    #[error("nothing was changed: you did not say yes")]
    Declined,
    #[error("cannot print the answer")]
    Print(#[from] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

impl OutboxError {
    pub(super) fn unknown(name: &str) -> Self {
        Self::Unknown { name: name.to_owned() }
    }

    /// As `hapax outbox --help` lists them.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Address(_)
            | Self::Memory
            | Self::Open(_)
            | Self::Keys(_)
            | Self::Encryption(_)
            | Self::Store(_)
            | Self::Print(_)
            | Self::Runtime(_) => 1,
            Self::NoTopic => 2,
            Self::Unknown { .. } | Self::NothingParked => 3,
            Self::Declined => 4,
            Self::Unconfirmed(_) => 5,
        })
    }

    /// Whether whoever read the answer has heard enough.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Nobody is left to be told when the terminal is gone.
pub(super) fn tell(error: &OutboxError) {
    let _ = writeln!(io::stderr(), "hapax: {}", crate::sentence(error));
}
