use std::{any::Any, error::Error, io, path::PathBuf, sync::Arc, time::Duration};

use rusqlite::ErrorCode;

/// Why a file could not be opened, and what to do about it.
///
/// Nothing was written: opening again is always safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The directory is not there.
    #[error("the directory {} does not exist: create it, or correct the path", .0.display())]
    MissingDirectory(PathBuf),
    /// The path leads to a directory.
    #[error("{} is a directory: give the path of a file", .0.display())]
    Directory(PathBuf),
    /// The file or its directory cannot be written.
    #[error(
        "{} cannot be opened for writing: it must be a file, and this process needs write access \
         to it and to its directory", .0.display()
    )]
    ReadOnly(PathBuf, #[source] Option<rusqlite::Error>),
    /// The file is not an SQLite database.
    #[error("{} is not an SQLite database: choose another path, or move the file away", .0.display())]
    NotADatabase(PathBuf, #[source] rusqlite::Error),
    /// The file is damaged.
    #[error("{} is damaged: stop using it and restore it from a backup", .0.display())]
    Damaged(PathBuf, #[source] Box<dyn Error + Send + Sync>),
    /// Another process holds the lock.
    #[error(
        "{} was locked by another process for {waited:?}: find what holds it (a backup, an open \
         transaction of an SQLite client) and end it, or wait longer", path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file is on a network filesystem of this kind, where locks and shared memory cannot be trusted.
    #[error("{} is on a network filesystem ({}): put it on a local disk", .0.display(), .1)]
    Network(PathBuf, &'static str),
    /// Write-ahead logging cannot be enabled there: SQLite insists on this journal mode.
    #[error(
        "write-ahead logging cannot be enabled for {} (its journal mode stays {}): name an \
         ordinary file on a local disk", .0.display(), .1
    )]
    NoWriteAheadLog(PathBuf, String),
    /// There is no room for the file.
    #[error("there is no room for {}: free disk space, or raise its size limit", .0.display())]
    Full(PathBuf, #[source] rusqlite::Error),
    /// The operating system refused something else a file and its threads need.
    #[error("the operating system refused what {} needs to be used", .0.display())]
    System(PathBuf, #[source] io::Error),
    /// SQLite failed in another way.
    #[error("SQLite could not open {}", .0.display())]
    Sqlite(PathBuf, #[source] rusqlite::Error),
}

/// What a failed transaction means for whoever asked for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransactError {
    /// Nothing was written. Trying again is safe.
    #[error("the file is unavailable; nothing was written")]
    Unavailable(#[source] Cause),
    /// It may or may not have been written. Read before deciding.
    #[error("the file did not confirm the write")]
    Unconfirmed(#[source] Cause),
    /// The file is damaged. Nothing was written.
    #[error("the file is damaged; nothing was written")]
    Damaged(#[source] Cause),
}

/// What made a transaction fail, kept as it was.
pub type Cause = Arc<dyn Error + Send + Sync>;

impl TransactError {
    /// Nothing was written.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(cause.into()))
    }

    /// It may or may not have been written.
    pub fn unconfirmed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unconfirmed(Arc::from(cause.into()))
    }

    /// What a failure of COMMIT itself means.
    ///
    /// A full disk, a lock or a deferred constraint leaves the transaction open, to be rolled back.
    /// After anything else the commit mark may be in the log, and recovery may find it.
    pub fn of_commit(error: rusqlite::Error) -> Self {
        let open = [
            ErrorCode::DatabaseBusy,
            ErrorCode::DatabaseLocked,
            ErrorCode::DiskFull,
            ErrorCode::ConstraintViolation,
        ];
        if error.sqlite_error_code().is_some_and(|code| open.contains(&code)) {
            Self::unavailable(error)
        } else {
            Self::unconfirmed(error)
        }
    }
}

/// What a failure before COMMIT, or of a read, means: nothing was written.
impl From<rusqlite::Error> for TransactError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(Arc::new(error))
            }
            _ => Self::unavailable(error),
        }
    }
}

/// Whether somebody else had the lock for too long.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// The thread that should have answered is gone.
#[derive(Debug, thiserror::Error)]
#[error("a thread that serves the file has stopped; open the file again")]
pub struct Stopped;

/// The path leads elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("the file was moved or replaced while it was open: put it back, or open it anew")]
pub(crate) struct Moved(#[source] pub(crate) Option<io::Error>);

/// A thread panicked in the middle of a transaction.
#[derive(Debug, thiserror::Error)]
#[error("the thread that writes the file panicked: {0}")]
pub(crate) struct Panicked(String);

impl Panicked {
    pub(crate) fn new(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Self(text.unwrap_or("no message").to_owned())
    }
}
