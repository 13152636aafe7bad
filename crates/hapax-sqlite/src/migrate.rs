//! The schema, step by step.
//!
//! A row of `hapax_meta` says how far the tables are, so the file's own `user_version` and
//! `application_id` stay with the program the file belongs to. Each step is one transaction that
//! looks again once it holds the write lock, so any number of processes may start at once and any
//! may be killed.

use std::io;

use hapax_core::Salt;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::error::MigrateError;

/// The steps, in order; step `n` leads to version `n + 1`. Shipped steps never change.
pub(crate) const STEPS: &[&str] = &[
    include_str!("../migrations/0001_baseline.sql"),
    include_str!("../migrations/0002_tenant_keys.sql"),
];

/// Creates the tables of Hapax in a database of your own, or brings them up to date, and returns
/// the salt for the fingerprints kept there.
///
/// Only tables, indexes and views whose names begin with `hapax_` are touched. The journal mode,
/// the pragmas and the schema of everything else stay as they are. Running it again, or in many
/// processes at once, is harmless; a run that is killed leaves nothing half-made.
///
/// ```
/// let mut connection = rusqlite::Connection::open_in_memory()?;
/// let salt = hapax_sqlite::migrate(&mut connection)?;
/// assert!(hapax_sqlite::migrate(&mut connection)? == salt);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn migrate(connection: &mut Connection) -> Result<Salt, MigrateError> {
    while next_step(connection)?.is_some() {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if let Some(version) = next_step(&transaction)? {
            transaction.execute_batch(STEPS[version])?;
            if version == 0 {
                transaction.execute(KEEP_SALT, [draw_salt()?])?;
            }
            transaction.execute(MARK, [i64::try_from(version + 1).unwrap_or(i64::MAX)])?;
            transaction.commit()?;
        }
    }
    read_salt(connection)
}

/// The salt of tables that are up to date; `None` if they are not, or are not there.
pub(crate) fn salt_of(connection: &Connection) -> Result<Option<Salt>, MigrateError> {
    match next_step(connection)? {
        Some(_) => Ok(None),
        None => read_salt(connection).map(Some),
    }
}

fn read_salt(connection: &Connection) -> Result<Salt, MigrateError> {
    let salt = connection.query_row(SALT, [], |row| row.get(0)).optional()?;
    salt.map(Salt::from_bytes).ok_or(MigrateError::Damaged { missing: "salt" })
}

/// The step to take next, `None` if the schema is the newest.
pub(crate) fn next_step(connection: &Connection) -> Result<Option<usize>, MigrateError> {
    if connection.query_row(IS_THERE, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Some(0));
    }
    step_after(connection.query_row(VERSION, [], |row| row.get(0)).optional()?)
}

/// Whether there are tables at all.
pub(crate) const IS_THERE: &str =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'hapax_meta'";
pub(crate) const VERSION: &str = "SELECT value FROM hapax_meta WHERE name = 'version'";
pub(crate) const SALT: &str = "SELECT value FROM hapax_meta WHERE name = 'salt'";
pub(crate) const KEEP_SALT: &str = "INSERT INTO hapax_meta (name, value) VALUES ('salt', ?1)";
pub(crate) const MARK: &str = "INSERT INTO hapax_meta (name, value) VALUES ('version', ?1) \
                               ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The step to take from this version, `None` if it is the newest.
pub(crate) fn step_after<S>(version: Option<i64>) -> Result<Option<usize>, MigrateError<S>> {
    let version = version.ok_or(MigrateError::Damaged { missing: "version" })?;
    match usize::try_from(version) {
        Ok(version) if version < STEPS.len() => Ok(Some(version)),
        Ok(version) if version == STEPS.len() => Ok(None),
        Ok(_) | Err(_) => Err(MigrateError::NewerSchema { found: version, known: STEPS.len() }),
    }
}

/// The salt lives as long as the tables: drawn anew, it would make every known request differ.
pub(crate) fn draw_salt<S>() -> Result<[u8; 32], MigrateError<S>> {
    let mut salt = [0_u8; 32];
    getrandom::fill(&mut salt).map_err(|error| MigrateError::System(io::Error::other(error)))?;
    Ok(salt)
}
