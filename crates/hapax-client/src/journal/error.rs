//! What went wrong, and what to do about it.

use std::path::PathBuf;

use hapax_core::codec;
use hapax_encryption::{FileKeyError, NotOpened};
use hapax_sqlite_file::{Cause, FileError, TransactError};

use super::{contents::FORMAT, name::Name, options::InvalidOptions};

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
        source: UnreadableEntry,
    },
    /// What is kept of this operation was written by a newer version.
    #[error("the operation `{name}` was journalled by a newer version: upgrade this program")]
    TooNew {
        /// The name it is kept under.
        name: String,
        /// What was found.
        source: UnreadableEntry,
    },
    /// What is kept of this operation is encrypted, and was not when this process opened the journal.
    /// Nothing was written.
    #[error(
        "the operation `{name}` is encrypted: the journal was opened before it was encrypted; open it \
         again with its master key"
    )]
    Encrypted {
        /// The name it is kept under.
        name: String,
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

impl JournalError {
    pub(super) fn unreadable(name: String, source: UnreadableEntry) -> Self {
        match source {
            UnreadableEntry::TooNew { .. }
            | UnreadableEntry::Answer(codec::Unreadable::TooNew { .. }) => {
                Self::TooNew { name, source }
            }
            UnreadableEntry::Encrypted => Self::Encrypted { name },
            UnreadableEntry::Impossible { .. }
            | UnreadableEntry::Altered
            | UnreadableEntry::NotOpened(_)
            | UnreadableEntry::Answer(_) => Self::Damaged { name, source },
        }
    }
}

/// Why a stored row was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableEntry {
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
    /// It is encrypted, and there is no key.
    #[error("it is encrypted, and the journal was opened without its master key")]
    Encrypted,
    /// It is encrypted, and not what was written in this row.
    #[error("what is encrypted in it does not open")]
    NotOpened(#[from] NotOpened),
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
    /// The file cannot be opened or prepared.
    #[error(transparent)]
    File(FileError),
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
    /// The journal is encrypted, and no key was given.
    #[error(
        "the journal {} is encrypted under the master key {needed}: give that key, by \
         `hapax call --master-key-file` or `JournalOptions::encryption`", path.display()
    )]
    Encrypted {
        /// The file.
        path: PathBuf,
        /// The name of the master key.
        needed: String,
    },
    /// The journal is encrypted under another master key than those given.
    #[error(
        "the journal {} is encrypted under the master key {needed}, and the one given is {given}: give \
         that one, or name it as the previous master key once", path.display()
    )]
    OtherMasterKey {
        /// The file.
        path: PathBuf,
        /// The name of the master key it needs.
        needed: String,
        /// The name of the one that was given.
        given: String,
    },
    /// The key in the file is not what this master key wrapped, or cannot be wrapped.
    #[error(
        "the key that the journal {} keeps cannot be used: if it is damaged, restore the journal from a \
         backup", path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: FileKeyError,
    },
    /// A test wanted it to fail.
    #[error("the journal was made to fail")]
    Injected(#[from] hapax_core::Injected),
}

impl From<FileError> for OpenError {
    fn from(error: FileError) -> Self {
        if let FileError::NotADatabase(path, source) = error {
            Self::NotAJournal { path, source: Some(source) }
        } else {
            Self::File(error)
        }
    }
}

impl From<TransactError> for JournalError {
    fn from(error: TransactError) -> Self {
        match error {
            TransactError::Unavailable(cause) => Self::Unavailable(cause),
            TransactError::Unconfirmed(cause) => Self::Unconfirmed(cause),
            TransactError::Damaged(cause) => Self::Corrupt(cause),
        }
    }
}
