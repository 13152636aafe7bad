//! From an address to an open store.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

use hapax::{Salt, Timestamp, memory, postgres, sqlite};

use super::AnyStore;

/// What a command wants of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To keep records in it: it is created and migrated where needed.
    Keep,
    /// To change what is in it. One that is not there is a mistake in its address, and not made.
    Change,
    /// To look at it: it is left as it is, and the right to write is not needed.
    Look,
}

/// Opens the store at this address.
pub(crate) async fn open(address: &Address, access: Access) -> Result<AnyStore, OpenError> {
    match address {
        Address::Memory => Ok(AnyStore::Memory(memory::Store::new(draw_salt()?, system_now))),
        Address::Sqlite(path) => Ok(AnyStore::Sqlite(open_sqlite(path, access).await?)),
        Address::Postgres(config) => {
            let connect = |migrate| {
                let options = postgres::Options { migrate, ..postgres::Options::default() };
                postgres::Store::connect(config, options)
            };
            Ok(AnyStore::Postgres(in_postgres(access, connect).await?))
        }
    }
}

/// Opens the store in this file.
pub(super) async fn open_sqlite(path: &Path, access: Access) -> Result<sqlite::Store, OpenError> {
    if access != Access::Keep && !path.exists() {
        return Err(OpenError::NoFile { path: path.to_owned() });
    }
    let path = path.to_owned();
    let opening = move || {
        let options = sqlite::Options::default();
        match access {
            Access::Keep => sqlite::Store::open(path, options),
            Access::Look => sqlite::Store::open_to_read(path, options),
            Access::Change => match sqlite::Store::open_to_read(&path, options.clone()) {
                // There are no tables: it is another file than the one that was meant.
                Err(error @ sqlite::OpenError::NotMigrated { found: 0, .. }) => Err(error),
                Ok(_) | Err(_) => sqlite::Store::open(path, options),
            },
        }
    };
    let opened = tokio::task::spawn_blocking(opening).await;
    let opened = opened.map_err(|error| OpenError::System(io::Error::other(error)))?;
    opened.map_err(|error| OpenError::Sqlite(Box::new(error)))
}

/// Connects to a server; `connect` is told whether it may migrate the schema.
pub(super) async fn in_postgres<T, F>(
    access: Access,
    connect: impl Fn(bool) -> F,
) -> Result<T, OpenError>
where
    F: Future<Output = Result<T, postgres::OpenError>>,
{
    let opened = match (access, connect(access == Access::Keep).await) {
        // There is a schema, of an older version.
        (Access::Change, Err(postgres::OpenError::NotMigrated { found: 1.. })) => {
            connect(true).await
        }
        (Access::Keep | Access::Change | Access::Look, opened) => opened,
    };
    opened.map_err(|error| OpenError::Postgres(Box::new(error)))
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
                if asks_for_tls(text) {
                    return Err(InvalidAddress::Tls);
                }
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

/// Whether an address refuses a connection that is not encrypted.
fn asks_for_tls(address: &str) -> bool {
    let settings = address.split_once('?').map_or("", |(_, settings)| settings).split('&');
    settings.filter_map(|setting| setting.split_once('=')).any(|(name, value)| {
        name == "sslmode" && matches!(value, "require" | "verify-ca" | "verify-full")
    })
}

/// Why a text is no store's address. Never repeats it: it may hold a password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidAddress {
    #[error(
        "no store is known by this address; write sqlite:PATH, \
         postgres://user@host:port/database or memory:"
    )]
    Unknown,
    #[error(
        "its `sslmode` asks for TLS, which this version does not speak to PostgreSQL yet; connect by \
         a local socket or through a tunnel, with sslmode=disable"
    )]
    Tls,
    #[error("it is no PostgreSQL address; write postgres://user@host:port/database")]
    Postgres(#[source] tokio_postgres::Error),
}

/// Why a store could not be opened, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("there is no file {}; give --store sqlite:PATH or postgres://...", path.display())]
    NoFile { path: PathBuf },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_asks_for_tls_is_told_that_there_is_none_yet() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let address = format!("postgres://shop@db/shop?connect_timeout=5&sslmode={mode}");
            let refused = address.parse::<Address>().unwrap_err();
            assert!(refused.to_string().contains("TLS"), "{refused}");
        }
        for mode in ["disable", "prefer"] {
            assert!(format!("postgres://shop@db/shop?sslmode={mode}").parse::<Address>().is_ok());
        }
    }
}
