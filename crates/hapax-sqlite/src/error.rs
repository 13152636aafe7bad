use std::{io, path::PathBuf};

use hapax_core::StoreError;
use hapax_sqlite_file::{FileError, TransactError};

/// Why a store could not be opened, and what to do about it.
///
/// Nothing was written, or a migration was rolled back: opening again is always safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened or prepared.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not there, or cannot be read.
    #[error("{} cannot be opened for reading", path.display())]
    Unreadable {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file has no tables of Hapax, or older ones, and is not to be changed.
    #[error(
        "{} has schema version {found}, this program needs {known}: check the path, or run \
         `hapax migrate`", path.display()
    )]
    NotMigrated {
        /// The database file.
        path: PathBuf,
        /// The version found; zero where there are no tables.
        found: usize,
        /// The version this program is written for.
        known: usize,
    },
    /// A newer version of Hapax has migrated the database.
    #[error(
        "{} has schema version {found}, this program knows up to {known}: upgrade this program",
        path.display()
    )]
    NewerSchema {
        /// The database file.
        path: PathBuf,
        /// The version found.
        found: i64,
        /// The newest version known.
        known: usize,
    },
    /// The file already holds tables and does not use write-ahead logging.
    ///
    /// The mode is the file's for everybody who opens it, so it is not changed behind the back of
    /// the program the file belongs to.
    #[error(
        "{} holds tables already and its journal mode is {mode}: Hapax needs write-ahead logging; \
         switch the file with `PRAGMA journal_mode = WAL`, or give Hapax a file of its own",
        path.display()
    )]
    JournalMode {
        /// The database file.
        path: PathBuf,
        /// The journal mode found.
        mode: String,
    },
}

/// Why the tables of Hapax could not be created or brought up to date.
///
/// What was begun is rolled back: trying again is always safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError<S = rusqlite::Error> {
    /// A newer version of Hapax has migrated the tables.
    #[error(
        "the tables of Hapax have version {found}, this program knows up to {known}: upgrade this \
         program"
    )]
    NewerSchema {
        /// The version found.
        found: i64,
        /// The newest version known.
        known: usize,
    },
    /// A row that is always there is not.
    #[error("hapax_meta lacks the row `{missing}`: restore the database from a backup")]
    Damaged {
        /// The name of the row.
        missing: &'static str,
    },
    /// The operating system gave no randomness for a salt.
    #[error("the operating system gave no randomness")]
    System(#[source] io::Error),
    /// SQLite failed.
    #[error("SQLite could not change the schema")]
    Sqlite(#[source] S),
}

impl From<rusqlite::Error> for MigrateError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Sqlite(source)
    }
}

/// What a failure before COMMIT, or of a read, means: nothing was written.
pub(crate) fn nothing_written(error: rusqlite::Error) -> StoreError {
    store_error(TransactError::from(error))
}

/// What a failure of COMMIT itself means.
pub(crate) fn commit_failed(error: rusqlite::Error) -> StoreError {
    store_error(TransactError::of_commit(error))
}

/// The same decision, in the words of a store.
pub(crate) fn store_error(error: TransactError) -> StoreError {
    match error {
        TransactError::Unavailable(cause) => StoreError::Unavailable(cause),
        TransactError::Unconfirmed(cause) => StoreError::Unconfirmed(cause),
        TransactError::Damaged(cause) => StoreError::Damaged(cause),
    }
}
