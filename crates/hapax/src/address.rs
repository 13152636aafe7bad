//! Where records are kept, as people write it, and as far as this program can open it.

use std::{fmt, fs, io, path::PathBuf, str::FromStr};

use hapax_core::store::StoreScheme;

/// The address of a store.
///
/// ```
/// let address: hapax::StoreAddress = "sqlite:hapax.db".parse()?;
/// assert_eq!(address.to_string(), "sqlite:hapax.db");
/// assert!("mysql://shop@db/shop".parse::<hapax::StoreAddress>().is_err());
/// # Ok::<(), hapax::InvalidAddress>(())
/// ```
#[derive(Debug, Clone)]
pub enum StoreAddress {
    /// `memory:`, which is gone with its process.
    Memory,
    /// `sqlite:PATH`
    Sqlite(PathBuf),
    /// `postgres://user@host:port/database`, or `host=… dbname=…`
    #[cfg(feature = "postgres")]
    Postgres(hapax_postgres::Address),
}

impl FromStr for StoreAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        match StoreScheme::of(text).ok_or(InvalidAddress::Unknown)? {
            StoreScheme::Memory => Ok(Self::Memory),
            StoreScheme::Sqlite { path } => Ok(Self::Sqlite(path.into())),
            StoreScheme::Postgres => postgres(text),
            StoreScheme::InFile { path } => in_file(path),
        }
    }
}

/// The address in a file. That of a server is read again for each connection.
fn in_file(path: &str) -> Result<StoreAddress, InvalidAddress> {
    let unreadable = |source| InvalidAddress::File { path: path.into(), source };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    match StoreScheme::of(text.trim()) {
        Some(StoreScheme::Sqlite { path }) => Ok(StoreAddress::Sqlite(path.into())),
        Some(StoreScheme::Postgres) => postgres_in_file(path, text.trim()),
        Some(StoreScheme::Memory | StoreScheme::InFile { .. }) | None => {
            Err(InvalidAddress::Content { path: path.into() })
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(text: &str) -> Result<StoreAddress, InvalidAddress> {
    Ok(StoreAddress::Postgres(text.parse()?))
}

#[cfg(feature = "postgres")]
fn postgres_in_file(path: &str, _: &str) -> Result<StoreAddress, InvalidAddress> {
    Ok(StoreAddress::Postgres(hapax_postgres::Address::in_file(path)?))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<StoreAddress, InvalidAddress> {
    Err(InvalidAddress::NotBuiltIn)
}

#[cfg(not(feature = "postgres"))]
fn postgres_in_file(_: &str, text: &str) -> Result<StoreAddress, InvalidAddress> {
    postgres(text)
}

impl fmt::Display for StoreAddress {
    /// Never shows a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

/// Why a text is no store's address. Never repeats it: it may hold a password.
///
/// ```
/// use hapax::{InvalidAddress, StoreAddress};
///
/// let refused = "mysql://shop@db/shop".parse::<StoreAddress>();
/// assert!(matches!(refused, Err(InvalidAddress::Unknown)));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAddress {
    /// It names no store.
    #[error(
        "no store is known by this address; write sqlite:PATH, \
         postgres://user@host:port/database, memory:, or address-file:PATH for a file that holds one"
    )]
    Unknown,
    /// It is an address of PostgreSQL, and this program was built without.
    #[error("this program was built without PostgreSQL; add the feature `postgres` of `hapax`")]
    NotBuiltIn,
    /// The file that holds it cannot be read.
    #[error("the address in {} cannot be read", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} holds no address of a store; write one line into it, postgres://... or sqlite:PATH", path.display())]
    Content {
        /// Which.
        path: PathBuf,
    },
    /// It is meant for PostgreSQL, and cannot be used.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] hapax_postgres::AddressError),
}
