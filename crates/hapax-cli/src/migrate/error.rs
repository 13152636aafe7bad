use std::{io, path::PathBuf};

use hapax::{postgres, sqlite};

use crate::store::{InvalidAddress, OpenError};

/// Why a schema is not what it should be, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrateCommandError {
    #[error("--store or HAPAX_STORE is no store's address")]
    Address(#[from] InvalidAddress),
    #[error("a store in memory has no schema")]
    Memory,
    #[error("SQLite has no roles; leave --role away")]
    NoRoles,
    #[error("the schema in {} cannot be read or changed", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: sqlite::MigrateError,
    },
    #[error("the schema cannot be read")]
    Postgres(#[source] Box<postgres::OpenError>),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the schema is there, but the role may not call the functions; check that it exists")]
    Grant(#[source] tokio_postgres::Error),
    #[error("cannot print the answer")]
    Print(#[from] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}
