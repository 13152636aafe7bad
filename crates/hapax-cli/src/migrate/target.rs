use std::{
    fmt::{self, Write},
    path::Path,
};

use hapax::{postgres, sqlite};
use rusqlite::{Connection, OpenFlags};
use tokio_postgres::NoTls;

use super::error::MigrateError;
use crate::store::{self, Access, Address};

/// What the store does to a file of its own.
const LOG_AHEAD: &str = "PRAGMA journal_mode = WAL;\n";

/// A store that has a schema, and who shall call its functions.
pub(super) struct Target<'a> {
    address: Address,
    role: Option<&'a str>,
}

impl<'a> Target<'a> {
    pub(super) fn new(address: Address, role: Option<&'a str>) -> Result<Self, MigrateError> {
        match (&address, role) {
            (Address::Memory, _) => Err(MigrateError::Memory),
            (Address::Sqlite(_), Some(_)) => Err(MigrateError::NoRoles),
            (Address::Sqlite(_) | Address::Postgres(_), _) => Ok(Self { address, role }),
        }
    }

    /// The version that is there; zero where there is no schema. Creates nothing.
    pub(super) async fn version(&self) -> Result<usize, MigrateError> {
        match &self.address {
            Address::Memory => Err(MigrateError::Memory),
            Address::Sqlite(path) => version_of(path),
            Address::Postgres(config) => {
                let version = postgres::schema_version(config).await;
                let version = version.map_err(|error| MigrateError::Postgres(Box::new(error)))?;
                Ok(usize::try_from(version).unwrap_or(0))
            }
        }
    }

    /// The version this program is written for.
    pub(super) fn newest(&self) -> usize {
        match &self.address {
            Address::Memory | Address::Sqlite(_) => sqlite::VERSION,
            Address::Postgres(_) => usize::try_from(postgres::VERSION).unwrap_or(0),
        }
    }

    /// What would be run on a schema of this version.
    pub(super) fn script(&self, from: usize) -> String {
        let mut script = match &self.address {
            Address::Sqlite(path) if !path.exists() => {
                format!("{LOG_AHEAD}{}", sqlite::script(from))
            }
            Address::Memory | Address::Sqlite(_) => sqlite::script(from),
            Address::Postgres(_) => postgres::script(i32::try_from(from).unwrap_or(i32::MAX)),
        };
        if let Some(role) = self.role {
            let name = role.replace('"', "\"\"").replace('\'', "''");
            // Writing to a string does not fail.
            let _ = writeln!(script, "SELECT hapax.grant_functions('\"{name}\"');");
        }
        script
    }

    /// A file that is not there is made as the store makes it. One that is keeps its journal mode: it may
    /// be somebody's own, with our tables as guests.
    pub(super) async fn migrate(&self) -> Result<(), MigrateError> {
        match &self.address {
            Address::Sqlite(path) if path.exists() => bring_up_to_date(path),
            Address::Memory | Address::Sqlite(_) | Address::Postgres(_) => {
                store::open(&self.address, Access::Keep).await?;
                Ok(())
            }
        }
    }

    /// Lets the role call the functions.
    pub(super) async fn grant(&self, role: &str) -> Result<(), MigrateError> {
        let Address::Postgres(config) = &self.address else { return Err(MigrateError::NoRoles) };
        let granted = async {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            let grant = "SELECT hapax.grant_functions(pg_catalog.quote_ident($1)::regrole)";
            client.query_one(grant, &[&role]).await
        };
        granted.await.map(|_| ()).map_err(MigrateError::Grant)
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

fn version_of(path: &Path) -> Result<usize, MigrateError> {
    if !path.exists() {
        return Ok(0);
    }
    let version = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|connection| sqlite::schema_version(&connection));
    version.map_err(|source| MigrateError::Sqlite { path: path.to_owned(), source })
}

fn bring_up_to_date(path: &Path) -> Result<(), MigrateError> {
    let migrated = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|mut connection| sqlite::migrate(&mut connection));
    let failed = |source| MigrateError::Sqlite { path: path.to_owned(), source };
    migrated.map(|_| ()).map_err(failed)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, sqlite::MigrateError> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(sqlite::Options::default().busy)?;
    Ok(connection)
}
