use std::{fmt, path::Path};

use hapax::{postgres, sqlite};
use rusqlite::{Connection, OpenFlags};

use super::error::MigrateCommandError;
use crate::store::{Access, OpenStore, StoreAddress};

/// What the store does to a file of its own.
const LOG_AHEAD: &str = "PRAGMA journal_mode = WAL;\n";

/// A store that has a schema, and who shall call its functions.
pub(super) struct MigrationTarget<'a> {
    address: StoreAddress,
    role: Option<&'a str>,
}

impl<'a> MigrationTarget<'a> {
    pub(super) fn new(
        address: StoreAddress,
        role: Option<&'a str>,
    ) -> Result<Self, MigrateCommandError> {
        match (&address, role) {
            (StoreAddress::Memory, _) => Err(MigrateCommandError::Memory),
            (StoreAddress::Sqlite(_), Some(_)) => Err(MigrateCommandError::NoRoles),
            (StoreAddress::Sqlite(_) | StoreAddress::Postgres(_), _) => Ok(Self { address, role }),
        }
    }

    /// The version that is there; zero where there is no schema. Creates nothing.
    pub(super) async fn version(&self) -> Result<usize, MigrateCommandError> {
        match &self.address {
            StoreAddress::Memory => Err(MigrateCommandError::Memory),
            StoreAddress::Sqlite(path) => version_of(path),
            StoreAddress::Postgres(address) => {
                let version = postgres::schema_version(address).await;
                let version =
                    version.map_err(|error| MigrateCommandError::Postgres(Box::new(error)))?;
                Ok(usize::try_from(version).unwrap_or(0))
            }
        }
    }

    /// The version this program is written for.
    pub(super) fn newest(&self) -> usize {
        match &self.address {
            StoreAddress::Memory | StoreAddress::Sqlite(_) => sqlite::VERSION,
            StoreAddress::Postgres(_) => usize::try_from(postgres::VERSION).unwrap_or(0),
        }
    }

    /// What would be run on a schema of this version.
    pub(super) fn script(&self, from: usize) -> String {
        let mut script = match &self.address {
            StoreAddress::Sqlite(path) if !path.exists() => {
                format!("{LOG_AHEAD}{}", sqlite::script(from))
            }
            StoreAddress::Memory | StoreAddress::Sqlite(_) => sqlite::script(from),
            StoreAddress::Postgres(_) => postgres::script(i32::try_from(from).unwrap_or(i32::MAX)),
        };
        script.extend(self.role.map(grant_statement));
        script
    }

    /// A file that is not there is made as the store makes it. One that is keeps its journal mode: it may
    /// be somebody's own, with our tables as guests.
    pub(super) async fn migrate(&self) -> Result<(), MigrateCommandError> {
        match &self.address {
            StoreAddress::Sqlite(path) if path.exists() => bring_up_to_date(path),
            StoreAddress::Memory | StoreAddress::Sqlite(_) | StoreAddress::Postgres(_) => {
                OpenStore::open(&self.address, Access::Keep).await?;
                Ok(())
            }
        }
    }

    /// Lets the role call the functions.
    pub(super) async fn grant(&self, role: &str) -> Result<(), MigrateCommandError> {
        let StoreAddress::Postgres(address) = &self.address else {
            return Err(MigrateCommandError::NoRoles);
        };
        let connected = address.connect().await.map_err(postgres::OpenError::from);
        let (client, connection) =
            connected.map_err(|error| MigrateCommandError::Postgres(Box::new(error)))?;
        tokio::spawn(connection);
        let grant = "SELECT hapax.grant_functions(pg_catalog.quote_ident($1)::regrole)";
        let granted = client.query_one(grant, &[&role]).await;
        granted.map(|_| ()).map_err(MigrateCommandError::Grant)
    }
}

impl fmt::Display for MigrationTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// All that a PostgreSQL database needs which has no schema of ours yet, and how to run it.
pub(super) fn whole_script(role: Option<&str>) -> String {
    let version = postgres::VERSION;
    let mut script = format!(
        "-- The schema of Hapax, version {version}, for a PostgreSQL database (14 or newer) that has none.\n\
         -- Run it as the role that shall own it: psql -v ON_ERROR_STOP=1 -f hapax.sql\n{}",
        postgres::script(0)
    );
    script.extend(role.map(grant_statement));
    script
}

/// The statement that lets a role call the functions.
fn grant_statement(role: &str) -> String {
    let name = role.replace('"', "\"\"").replace('\'', "''");
    format!("SELECT hapax.grant_functions('\"{name}\"');\n")
}

fn version_of(path: &Path) -> Result<usize, MigrateCommandError> {
    if !path.exists() {
        return Ok(0);
    }
    let version = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|connection| sqlite::schema_version(&connection));
    version.map_err(|source| MigrateCommandError::Sqlite { path: path.to_owned(), source })
}

fn bring_up_to_date(path: &Path) -> Result<(), MigrateCommandError> {
    let migrated = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|mut connection| sqlite::migrate(&mut connection));
    let failed = |source| MigrateCommandError::Sqlite { path: path.to_owned(), source };
    migrated.map(|_| ()).map_err(failed)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, sqlite::MigrateError> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(sqlite::Options::default().busy)?;
    Ok(connection)
}
