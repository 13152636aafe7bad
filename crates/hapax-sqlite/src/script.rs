//! The schema for people who run SQL by hand.

use rusqlite::Connection;

use crate::{
    error::MigrateError,
    migrate::{KEEP_SALT, MARK, STEPS, next_step},
};

/// The version of the tables this code is written for.
pub const VERSION: usize = STEPS.len();

/// The version of the tables in this database; zero where there are none. Changes nothing.
///
/// ```
/// use hapax_sqlite::{VERSION, migrate, schema_version};
///
/// let mut connection = rusqlite::Connection::open_in_memory()?;
/// assert_eq!(schema_version(&connection)?, 0);
/// migrate(&mut connection)?;
/// assert_eq!(schema_version(&connection)?, VERSION);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn schema_version(connection: &Connection) -> Result<usize, MigrateError> {
    Ok(next_step(connection)?.unwrap_or(VERSION))
}

/// What brings tables of this version up to date, as SQL for somebody else to run.
///
/// ```
/// use hapax_sqlite::{VERSION, schema_version, script};
///
/// let connection = rusqlite::Connection::open_in_memory()?;
/// connection.execute_batch(&script(0))?;
/// assert_eq!(schema_version(&connection)?, VERSION);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn script(from: usize) -> String {
    let step = |(version, step): (usize, &&str)| {
        let salt = if version == 0 {
            KEEP_SALT.replace("?1", "randomblob(32)") + ";\n"
        } else {
            String::new()
        };
        let mark = MARK.replace("?1", &(version + 1).to_string());
        format!("BEGIN IMMEDIATE;\n{step}{salt}{mark};\nCOMMIT;\n")
    };
    STEPS.iter().enumerate().skip(from).map(step).collect()
}
