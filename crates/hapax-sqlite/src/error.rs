use std::{error::Error, io, path::PathBuf, time::Duration};

use hapax_core::StoreError;
use rusqlite::ErrorCode;

/// Why a store could not be opened, and what to do about it.
///
/// Nothing was written, or a migration was rolled back: opening again is always safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory is not there.
    #[error("the directory {} does not exist: create it, or correct the path", directory.display())]
    MissingDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// The file or its directory cannot be written.
    #[error(
        "{} cannot be opened for writing: it must be a file, and this process needs write access \
         to it and to its directory", path.display()
    )]
    ReadOnly {
        /// The database file.
        path: PathBuf,
        /// What SQLite said, where it said something.
        source: Option<rusqlite::Error>,
    },
    /// The path leads to a directory.
    #[error("{} is a directory: give the path of a file", path.display())]
    Directory {
        /// The path.
        path: PathBuf,
    },
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
    /// The file is not an SQLite database.
    #[error("{} is not an SQLite database: choose another path, or move the file away", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The database is damaged.
    #[error("{} is damaged: stop using it and restore it from a backup", path.display())]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What was found.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another process holds the lock.
    #[error(
        "{} was locked by another process for {waited:?}: find what holds it (a backup, an open \
         transaction of an SQLite client) and end it, or wait longer", path.display()
    )]
    Locked {
        /// The database file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
        /// What SQLite said.
        source: rusqlite::Error,
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
    /// The file is on a network filesystem, where locks and shared memory cannot be trusted.
    #[error("{} is on a network filesystem ({filesystem}): put it on a local disk", path.display())]
    Network {
        /// The database file.
        path: PathBuf,
        /// The kind of filesystem.
        filesystem: &'static str,
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
    /// Write-ahead logging cannot be enabled there.
    #[error(
        "write-ahead logging cannot be enabled for {} (its journal mode stays {mode}): name an \
         ordinary file on a local disk", path.display()
    )]
    NoWriteAheadLog {
        /// The database file.
        path: PathBuf,
        /// The journal mode SQLite insists on.
        mode: String,
    },
    /// There is no room for the database.
    #[error("there is no room for {}: free disk space, or raise the size limit", path.display())]
    Full {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The operating system refused something else a store needs.
    #[error("the operating system refused what a store needs to start")]
    System(#[source] io::Error),
    /// SQLite failed in another way.
    #[error("SQLite could not open {}", path.display())]
    Sqlite {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
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
    if is_damage(&error) { StoreError::damaged(error) } else { StoreError::unavailable(error) }
}

/// What a failure of COMMIT itself means.
///
/// A full disk, a lock or a deferred constraint leaves the transaction open, to be rolled back.
/// After anything else the commit mark may be in the log, and recovery may find it.
pub(crate) fn commit_failed(error: rusqlite::Error) -> StoreError {
    let open = [
        ErrorCode::DatabaseBusy,
        ErrorCode::DatabaseLocked,
        ErrorCode::DiskFull,
        ErrorCode::ConstraintViolation,
    ];
    if error.sqlite_error_code().is_some_and(|code| open.contains(&code)) {
        StoreError::unavailable(error)
    } else {
        StoreError::unconfirmed(error)
    }
}

pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    let damage = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
    error.sqlite_error_code().is_some_and(|code| damage.contains(&code))
}

/// The path leads elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("the database file was moved or replaced while it was open: put it back, or open it anew")]
pub(crate) struct Moved(#[source] pub(crate) Option<io::Error>);

/// A thread of the store is gone.
#[derive(Debug, thiserror::Error)]
#[error("a thread of the store has stopped; open the store again")]
pub(crate) struct Stopped;

/// A thread of the store panicked while it did this.
#[derive(Debug, thiserror::Error)]
#[error("the store panicked: {0}")]
pub(crate) struct Panicked(pub(crate) String);

impl Panicked {
    pub(crate) fn new(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Self(text.unwrap_or("no message").to_owned())
    }
}
