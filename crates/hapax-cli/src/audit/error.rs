use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
};

use hapax::StoreError;
use hapax_messaging::sink::InvalidSinkAddress;

use crate::store::{InvalidAddress, OpenError};

/// Why nothing could be found out, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    #[error("--store or --inbox is no store's address")]
    Address(#[from] InvalidAddress),
    #[error("a store in memory cannot be looked at from here")]
    Memory,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the outbox could not be read")]
    Store(#[from] StoreError),
    #[error("there is no destination {name:?}; see `hapax outbox list`")]
    Unknown { name: String },
    #[error("cannot read {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{lines} lines of {} are no events", path.display())]
    NotEvents { path: PathBuf, lines: u64 },
    #[error("{} says of nothing that it was emitted", path.display())]
    NothingEmitted { path: PathBuf },
    #[error("--at cannot be read back")]
    At(#[source] InvalidSinkAddress),
    #[error("this place cannot be read without taking from it; look at --consumer or --acted")]
    NotReadable,
    #[cfg(not(all(feature = "kafka", feature = "nats")))]
    #[error(
        "this hapax was built without {feature}; install a packaged one, which has it, \
         or build it with `cargo build --release --features {feature}`"
    )]
    NotBuilt { feature: &'static str },
    #[cfg(feature = "nats")]
    #[error("say with --stream which stream to read")]
    NoStream,
    #[cfg(any(feature = "kafka", feature = "nats"))]
    #[error("--at could not be read to its end")]
    Reading(#[source] Box<dyn Error + Send + Sync>),
    #[error("the inbox could not be read")]
    Inbox(#[source] Box<dyn Error + Send + Sync>),
    #[error("there is no consumer {name:?} in this inbox")]
    NoConsumer { name: String },
    #[error("the inbox has a record in state {state}, which this version does not know")]
    UnknownState { state: i16 },
    #[error("cannot print the answer")]
    Print(#[from] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

impl AuditError {
    #[cfg(any(feature = "kafka", feature = "nats"))]
    pub(super) fn at(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Reading(cause.into())
    }

    pub(super) fn inbox(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Inbox(cause.into())
    }
}

/// Nobody is left to be told when the terminal is gone.
pub(super) fn tell(error: &AuditError) {
    let _ = writeln!(io::stderr(), "hapax: {}", crate::sentence(error));
}
