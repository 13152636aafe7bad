//! The schema, step by step.
//!
//! `user_version` says how far a database is. Each step is one transaction that looks again once
//! it holds the write lock, so any number of processes may start at once and any may be killed.

use std::io;

use hapax_core::Salt;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::{connect::Database, error::OpenError};

/// The steps, in order; step `n` leads to version `n + 1`. Shipped steps never change.
const STEPS: &[&str] = &[
    include_str!("../migrations/0001_operations.sql"),
    include_str!("../migrations/0002_notes.sql"),
];

/// `HAPX`: marks the file as ours.
const APPLICATION_ID: i64 = 0x4841_5058;

/// Brings the database to the newest schema, and reads the salt it was created with.
pub(crate) fn migrate(connection: &mut Connection, database: &Database) -> Result<Salt, OpenError> {
    let refused = |source| database.refused(source);
    while next_step(connection, database)?.is_some() {
        let behavior = TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior).map_err(refused)?;
        if let Some(version) = next_step(&transaction, database)? {
            transaction.execute_batch(STEPS[version]).map_err(refused)?;
            if version == 0 {
                draw_salt(&transaction)?.map_err(refused)?;
            }
            mark(&transaction, version + 1).map_err(refused)?;
            transaction.commit().map_err(refused)?;
        }
    }
    let salt: Option<[u8; 32]> = connection
        .query_row("SELECT value FROM meta WHERE name = 'salt'", [], |row| row.get(0))
        .optional()
        .map_err(refused)?;
    let damaged = || OpenError::Damaged { path: database.path.clone(), source: None };
    salt.map(Salt::from_bytes).ok_or_else(damaged)
}

/// The step to take next, `None` if the schema is the newest.
fn next_step(connection: &Connection, database: &Database) -> Result<Option<usize>, OpenError> {
    let pragma = |name| {
        let read = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map_err(|source| database.refused(source))
    };
    let (version, owner) = (pragma("user_version")?, pragma("application_id")?);
    if owner != APPLICATION_ID && (owner != 0 || version != 0) {
        return Err(OpenError::Foreign { path: database.path.clone() });
    }
    match usize::try_from(version) {
        Ok(version) if version < STEPS.len() => Ok(Some(version)),
        Ok(version) if version == STEPS.len() => Ok(None),
        Ok(_) | Err(_) => Err(OpenError::NewerSchema {
            path: database.path.clone(),
            found: version,
            known: STEPS.len(),
        }),
    }
}

/// The salt lives as long as the database: drawn anew, it would make every known request differ.
fn draw_salt(connection: &Connection) -> Result<rusqlite::Result<usize>, OpenError> {
    let mut salt = [0_u8; 32];
    getrandom::fill(&mut salt).map_err(|error| OpenError::System(io::Error::other(error)))?;
    Ok(connection.execute("INSERT INTO meta (name, value) VALUES ('salt', ?1)", [salt]))
}

fn mark(connection: &Connection, version: usize) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", i64::try_from(version).unwrap_or(i64::MAX))
}
