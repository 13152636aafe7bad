//! What went wrong, and what to do about it.

use std::{error::Error, io, path::PathBuf, sync::Arc, time::Duration};

use hapax_core::codec;
use rusqlite::ErrorCode;

use super::{name::Name, options::InvalidOptions, row::FORMAT};

/// What a failing journal means for the caller.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Nothing was written. Trying again is safe.
    #[error("the journal is unavailable; nothing was written")]
    Unavailable(#[source] Cause),
    /// It may or may not have been written. Ask again: the same write twice is one.
    #[error("the journal did not confirm the write")]
    Unconfirmed(#[source] Cause),
    /// What is kept of this operation is not what was written. It is neither sent nor changed.
    #[error(
        "what the journal keeps of the operation `{name}` is damaged: restore the journal from a \
         backup, or find out at the other side what became of it and forget it by force"
    )]
    Damaged {
        /// The name it is kept under.
        name: String,
        /// What was found.
        source: Unreadable,
    },
    /// What is kept of this operation was written by a newer version.
    #[error("the operation `{name}` was journalled by a newer version: upgrade this program")]
    TooNew {
        /// The name it is kept under.
        name: String,
        /// What was found.
        source: Unreadable,
    },
    /// The file itself is damaged. Nothing was written.
    #[error("the journal is damaged: stop using it, and restore it from a backup")]
    Corrupt(#[source] Cause),
    /// The request is larger than the journal takes. Nothing was written.
    #[error(
        "the body of the operation `{name}` is {len} bytes; this journal takes up to {max}: raise \
         `request_bytes_max`, or send less"
    )]
    TooLarge {
        /// The operation.
        name: Name,
        /// The size of its body, in bytes.
        len: usize,
        /// The limit, in bytes.
        max: usize,
    },
}

/// What made a journal fail, kept as it was.
pub type Cause = Arc<dyn Error + Send + Sync>;

impl JournalError {
    pub(super) fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(cause.into()))
    }

    pub(super) fn unconfirmed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unconfirmed(Arc::from(cause.into()))
    }

    pub(super) fn unreadable(name: String, source: Unreadable) -> Self {
        match source {
            Unreadable::TooNew { .. } | Unreadable::Answer(codec::Unreadable::TooNew { .. }) => {
                Self::TooNew { name, source }
            }
            Unreadable::Impossible { .. } | Unreadable::Altered | Unreadable::Answer(_) => {
                Self::Damaged { name, source }
            }
        }
    }
}

/// Why a stored row was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// A newer version wrote it.
    #[error("it has format {found}; this version reads up to {FORMAT}")]
    TooNew {
        /// The format found.
        found: i64,
    },
    /// A value that no version ever wrote.
    #[error("column {column} holds a value that was never written: {value}")]
    Impossible {
        /// Which column.
        column: &'static str,
        /// What it holds.
        value: String,
    },
    /// The request is not the one that was stored.
    #[error("the stored request does not match its digest")]
    Altered,
    /// The answer is not the one that was stored.
    #[error("the stored answer cannot be read")]
    Answer(#[source] codec::Unreadable),
}

/// Why a journal could not be opened, and what to do about it.
///
/// Nothing was written, or it was rolled back: opening again is always safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// An option is out of bounds.
    #[error(transparent)]
    Options(#[from] InvalidOptions),
    /// The directory is not there.
    #[error("the directory {} does not exist: create it, or correct the path", directory.display())]
    MissingDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// The file or its directory cannot be written.
    #[error(
        "the journal {} cannot be opened for writing: it must be a file, and this process needs \
         write access to it and to its directory", path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What the system or SQLite said, where it said something.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The file is something else.
    #[error(
        "{} is not a journal of Hapax: choose another path, or move the file away", path.display()
    )]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// What SQLite said, where it said something.
        source: Option<rusqlite::Error>,
    },
    /// The file is damaged.
    #[error("the journal {} is damaged: restore it from a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// Another process holds the lock.
    #[error(
        "the journal {} was locked by another process for {waited:?}: find what holds it (a \
         backup, an open transaction of an SQLite client) and end it, or wait longer",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A newer version of Hapax has written the file.
    #[error(
        "the journal {} has version {found}, this program knows up to {known}: upgrade this \
         program", path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// The file is on a network filesystem, where locks cannot be trusted and leases mean nothing.
    #[error(
        "the journal {} is on a network filesystem ({filesystem}): put it on a local disk",
        path.display()
    )]
    Network {
        /// The file.
        path: PathBuf,
        /// The kind of filesystem.
        filesystem: &'static str,
    },
    /// Write-ahead logging cannot be enabled there.
    #[error(
        "write-ahead logging cannot be enabled for {} (its journal mode stays {mode}): name an \
         ordinary file on a local disk", path.display()
    )]
    NoWriteAheadLog {
        /// The file.
        path: PathBuf,
        /// The journal mode SQLite insists on.
        mode: String,
    },
    /// There is no room for the journal.
    #[error("there is no room for the journal {}: free disk space", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The operating system refused something else a journal needs.
    #[error("the operating system refused what a journal needs to start")]
    System(#[source] io::Error),
    /// A test wanted it to fail.
    #[error("the journal was made to fail")]
    Injected(#[from] hapax_core::Injected),
    /// SQLite failed in another way.
    #[error("SQLite could not open the journal {}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// What a failure before COMMIT means: nothing was written.
pub(super) fn nothing_written(error: rusqlite::Error) -> JournalError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            JournalError::Corrupt(Arc::new(error))
        }
        _ => JournalError::unavailable(error),
    }
}

/// What a failure of COMMIT itself means.
///
/// A full disk, a lock or a constraint leaves the transaction open, to be rolled back. After
/// anything else the commit mark may be in the log, and recovery may find it.
pub(super) fn commit_failed(error: rusqlite::Error) -> JournalError {
    let open = [
        ErrorCode::DatabaseBusy,
        ErrorCode::DatabaseLocked,
        ErrorCode::DiskFull,
        ErrorCode::ConstraintViolation,
    ];
    if error.sqlite_error_code().is_some_and(|code| open.contains(&code)) {
        JournalError::unavailable(error)
    } else {
        JournalError::unconfirmed(error)
    }
}

/// The path leads elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("the journal was moved or replaced while it was open: put it back, or open it anew")]
pub(super) struct Moved(#[source] pub(super) Option<io::Error>);

/// The thread that writes is gone.
#[derive(Debug, thiserror::Error)]
#[error("the journal's thread has stopped; open the journal again")]
pub(super) struct Stopped;
