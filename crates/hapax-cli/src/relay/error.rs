use std::{io, path::PathBuf};

use hapax::EncryptionError;
use hapax_core::outbox::InvalidDestination;
use hapax_gateway::{StartError, config::ConfigError};
use hapax_messaging::sink::SinkError;

use crate::{
    encryption::EncryptionTaskError,
    serve::ServeError,
    store::{InvalidAddress, OpenError},
    telemetry::ReportingError,
};

/// Why a relay could not be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayRunError {
    #[error("the file cannot be used:\n{0}")]
    Config(#[from] ConfigError),
    #[error("the store's address cannot be used")]
    Address(#[from] InvalidAddress),
    #[error("nothing can be emitted into a store in memory; give sqlite:PATH or postgres://...")]
    Memory,
    #[error("only PostgreSQL has a log that can be followed; leave out --follow")]
    NoLog,
    #[error("the server's log cannot be followed; leave out --follow to read the table instead")]
    Follow(#[from] hapax::postgres::tail::TailError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error("--name or --topics cannot be used")]
    Destination(#[from] InvalidDestination),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error("{flag} means nothing to this destination; leave it out")]
    Needless { flag: &'static str },
    #[error("its address has a part that may be secret and is not shown; give --name")]
    NoName,
    #[error("--lease is too short for a relay to renew it; give at least 1s")]
    LeaseTooShort,
    #[error("a webhook is signed; give --secret-env or --secret-file")]
    NoSecret,
    #[error("--secret-env names {name}, which is not set")]
    NoVariable { name: String },
    #[error("cannot read --secret-file {}", path.display())]
    SecretFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Keys(#[from] EncryptionTaskError),
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    #[error(transparent)]
    Admin(#[from] StartError),
    #[error(transparent)]
    Telemetry(#[from] ReportingError),
    #[error(transparent)]
    Log(#[from] ServeError),
    #[error("the operating system refused what a relay needs")]
    Runtime(#[source] io::Error),
}
