//! Where records are kept, as people write it, and as far as this program can open it.

use std::{fmt, path::PathBuf, str::FromStr};

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
    /// `postgres://user@host:port/database`
    #[cfg(feature = "postgres")]
    Postgres(Box<tokio_postgres::Config>),
}

impl FromStr for StoreAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        match StoreScheme::of(text).ok_or(InvalidAddress::Unknown)? {
            StoreScheme::Memory => Ok(Self::Memory),
            StoreScheme::Sqlite { path } => Ok(Self::Sqlite(path.into())),
            StoreScheme::Postgres => postgres(text),
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(text: &str) -> Result<StoreAddress, InvalidAddress> {
    if asks_for_tls(text) {
        return Err(InvalidAddress::Tls);
    }
    let config = text.parse().map_err(InvalidAddress::Postgres)?;
    Ok(StoreAddress::Postgres(Box::new(config)))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<StoreAddress, InvalidAddress> {
    Err(InvalidAddress::NotBuiltIn)
}

impl fmt::Display for StoreAddress {
    /// Never shows a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => {
                write!(f, "PostgreSQL, database {}", config.get_dbname().unwrap_or("by default"))
            }
        }
    }
}

/// Whether an address refuses a connection that is not encrypted.
#[cfg(feature = "postgres")]
fn asks_for_tls(address: &str) -> bool {
    let settings = address.split_once('?').map_or("", |(_, settings)| settings).split('&');
    settings.filter_map(|setting| setting.split_once('=')).any(|(name, value)| {
        name == "sslmode" && matches!(value, "require" | "verify-ca" | "verify-full")
    })
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
         postgres://user@host:port/database or memory:"
    )]
    Unknown,
    /// It is an address of PostgreSQL, and this program was built without.
    #[error("this program was built without PostgreSQL; add the feature `postgres` of `hapax`")]
    NotBuiltIn,
    /// It asks for a connection that is encrypted.
    #[error(
        "its `sslmode` asks for TLS, which this version does not speak to PostgreSQL yet; connect by \
         a local socket or through a tunnel, with sslmode=disable"
    )]
    Tls,
    /// It is meant for PostgreSQL, and cannot be understood.
    #[cfg(feature = "postgres")]
    #[error("it is no PostgreSQL address; write postgres://user@host:port/database")]
    Postgres(#[source] tokio_postgres::Error),
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_asks_for_tls_is_told_that_there_is_none_yet() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let address = format!("postgres://shop@db/shop?connect_timeout=5&sslmode={mode}");
            let refused = address.parse::<StoreAddress>().unwrap_err();
            assert!(refused.to_string().contains("TLS"), "{refused}");
        }
        for mode in ["disable", "prefer"] {
            let address = format!("postgres://shop@db/shop?sslmode={mode}");
            assert!(address.parse::<StoreAddress>().is_ok());
        }
    }
}
