//! The store behind an address.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use hapax_core::{DynStore, Faults, store::StoreScheme};

use crate::error::CrashError;

/// Where a store is: `sqlite:PATH` or a PostgreSQL URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DurableAddress {
    /// A file.
    Sqlite(PathBuf),
    /// A database of a PostgreSQL server.
    Postgres(String),
}

impl FromStr for DurableAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match StoreScheme::of(text) {
            Some(StoreScheme::Sqlite { path }) => Ok(Self::Sqlite(path.into())),
            Some(StoreScheme::Postgres) => Ok(Self::Postgres(text.to_owned())),
            Some(StoreScheme::Memory | StoreScheme::InFile { .. }) | None => {
                Err("nothing there outlives a process")
            }
        }
    }
}

impl fmt::Display for DurableAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(url),
        }
    }
}

impl DurableAddress {
    /// The store at this address.
    pub async fn open(&self, faults: Faults) -> Result<DynStore, CrashError> {
        match self {
            Self::Sqlite(path) => Self::sqlite(path, faults).map(DynStore::from),
            Self::Postgres(url) => {
                let options =
                    hapax_postgres::Options { faults, ..hapax_postgres::Options::default() };
                let config: tokio_postgres::Config = url.parse()?;
                let opened = hapax_postgres::Store::connect(&config, options).await;
                let opened = opened.map_err(|error| CrashError::Open {
                    address: url.clone(),
                    source: error.into(),
                });
                opened.map(DynStore::from)
            }
        }
    }

    /// The store in this file, which is an outbox as well.
    pub fn sqlite(path: &Path, faults: Faults) -> Result<hapax_sqlite::Store, CrashError> {
        let options = hapax_sqlite::Options { faults, ..hapax_sqlite::Options::default() };
        hapax_sqlite::Store::open(path, options).map_err(|error| CrashError::Open {
            address: path.display().to_string(),
            source: error.into(),
        })
    }
}
