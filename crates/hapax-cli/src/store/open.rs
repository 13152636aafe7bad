//! From an address to an open store.

use std::{
    fmt, io,
    path::PathBuf,
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

use hapax::{Salt, Timestamp, memory, postgres, sqlite};

use super::AnyStore;

/// Opens the store at this address, creating or migrating it where needed.
pub(crate) async fn open(address: &Address) -> Result<AnyStore, OpenError> {
    match address {
        Address::Memory => Ok(AnyStore::Memory(memory::Store::new(draw_salt()?, system_now))),
        Address::Sqlite(path) => {
            let path = path.clone();
            let opening = move || sqlite::Store::open(path, sqlite::Options::default());
            let opened = tokio::task::spawn_blocking(opening).await;
            let opened = opened.map_err(|error| OpenError::System(io::Error::other(error)))?;
            opened.map(AnyStore::Sqlite).map_err(|error| OpenError::Sqlite(Box::new(error)))
        }
        Address::Postgres(config) => {
            let opened = postgres::Store::connect(config, postgres::Options::default()).await;
            opened.map(AnyStore::Postgres).map_err(|error| OpenError::Postgres(Box::new(error)))
        }
    }
}

/// Where records are kept, as people write it.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    /// `memory:`
    Memory,
    /// `sqlite:PATH`
    Sqlite(PathBuf),
    /// `postgres://user@host:port/database`
    Postgres(Box<tokio_postgres::Config>),
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        match text.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", _)) => {
                let config = text.parse().map_err(InvalidAddress::Postgres)?;
                Ok(Self::Postgres(Box::new(config)))
            }
            Some(_) | None => Err(InvalidAddress::Unknown),
        }
    }
}

impl fmt::Display for Address {
    /// Never shows a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(config) => {
                write!(f, "PostgreSQL, database {}", config.get_dbname().unwrap_or("by default"))
            }
        }
    }
}

/// Why a text is no store's address. Never repeats it: it may hold a password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidAddress {
    #[error(
        "no store is known by this address; write sqlite:PATH, \
         postgres://user@host:port/database or memory:"
    )]
    Unknown,
    #[error("it is no PostgreSQL address; write postgres://user@host:port/database")]
    Postgres(#[source] tokio_postgres::Error),
}

/// Why a store could not be opened, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("the SQLite store cannot be opened")]
    Sqlite(#[source] Box<sqlite::OpenError>),
    #[error("the PostgreSQL store cannot be opened")]
    Postgres(#[source] Box<postgres::OpenError>),
    #[error("the operating system refused what a store needs")]
    System(#[source] io::Error),
}

fn draw_salt() -> Result<Salt, OpenError> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(|error| OpenError::System(io::Error::other(error)))?;
    Ok(Salt::from_bytes(salt))
}

#[expect(clippy::disallowed_methods, reason = "this is the memory store's clock")]
fn system_now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::ZERO.plus(since_epoch.unwrap_or_default())
}
