//! How the file is opened, made and recognised.

use std::{
    error::Error,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use hapax_encryption::FileKey;
use hapax_sqlite_file::{Connect, DatabaseFile, Durability, FileError};
use rusqlite::{Connection, TransactionBehavior};

use super::{
    encryption::{self, FoundKey},
    error::OpenError,
    options::JournalOptions,
    place,
};

const SCHEMA: &str = include_str!("schema.sql");
/// The version of a file in the clear, and of one whose rows are sealed, which older programs do not
/// know.
const CLEAR: i64 = 1;
const ENCRYPTED: i64 = 2;
/// Says in the file's header that it is a journal: "HpxJ".
const APPLICATION_ID: i64 = 0x4870_784a;

/// A journal's file, and how it is to be opened.
#[derive(Debug)]
pub(super) struct Database {
    file: DatabaseFile,
    pub(super) options: JournalOptions,
    /// What rows are sealed with; `None` if they are clear.
    pub(super) key: Option<FileKey>,
    /// Transactions that were committed and may have written something.
    pub(super) commits: Arc<AtomicU64>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Empty,
    Clear,
    Encrypted,
}

/// Whether a file is as it is wanted.
enum FilePreparation {
    /// It is, and this seals its rows.
    Ready(Option<FileKey>),
    /// It is no journal yet, or not encrypted yet.
    Unmade(FileKind),
    /// Its key is under a master key that the present one follows.
    Following,
}

impl Database {
    /// The file of a journal and a connection to it, made if there is none yet.
    pub(super) fn open(
        path: PathBuf,
        options: JournalOptions,
    ) -> Result<(Self, Connection), OpenError> {
        options.check()?;
        let file = DatabaseFile::new(path, options.busy);
        let mut database = Self { file, options, key: None, commits: Arc::default() };
        let mut connection = database.configured()?;
        database.key = match database.preparation(&connection)? {
            FilePreparation::Ready(key) => key,
            FilePreparation::Unmade(_) | FilePreparation::Following => {
                database.make(&mut connection)?
            }
        };
        database.file.pin()?;
        Ok((database, connection))
    }

    /// A connection to a file that may be, or become, a journal. Anything else is left as it is.
    ///
    /// Every commit is on disk before it is answered: a request that is not must not be sent.
    fn configured(&self) -> Result<Connection, OpenError> {
        let path = self.file.path();
        // SQLite would take the first two for databases that are no files.
        if path.as_os_str().is_empty() || path.as_os_str() == ":memory:" || path.is_dir() {
            return Err(FileError::ReadOnly(path.to_owned(), None).into());
        }
        let connection = self.file.open_to_write()?;
        let preparation = self.preparation(&connection)?;
        if self.file.is_pinned() && matches!(preparation, FilePreparation::Unmade(_)) {
            return Err(self.no_journal());
        }
        self.file.configure(&connection, Durability::Full)?;
        self.file.log_ahead(&connection)?;
        Ok(connection)
    }

    /// What the file is. Refused if it is something else.
    fn kind(&self, connection: &Connection) -> Result<FileKind, OpenError> {
        // One statement, because another process may be making it.
        let look = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
                    FROM pragma_application_id, pragma_user_version";
        let found: (i64, i64, i64) = connection
            .query_row(look, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(|source| self.file.refused(source))?;
        match found {
            (APPLICATION_ID, CLEAR, _) => Ok(FileKind::Clear),
            (APPLICATION_ID, ENCRYPTED, _) => Ok(FileKind::Encrypted),
            (APPLICATION_ID, found, _) if found > ENCRYPTED => {
                let path = self.file.path().to_owned();
                Err(OpenError::NewerVersion { path, found, known: ENCRYPTED })
            }
            (0, 0, 0) => Ok(FileKind::Empty),
            _ => Err(self.no_journal()),
        }
    }

    /// Whether the file is as the options want it. Refused if it needs a key that was not given.
    fn preparation(&self, connection: &Connection) -> Result<FilePreparation, OpenError> {
        let kind = self.kind(connection)?;
        match (kind, &self.options.encryption) {
            (FileKind::Empty, _) | (FileKind::Clear, Some(_)) => Ok(FilePreparation::Unmade(kind)),
            (FileKind::Clear, None) => Ok(FilePreparation::Ready(None)),
            (FileKind::Encrypted, None) => Err(encryption::locked(&self.file, connection)),
            (FileKind::Encrypted, Some(encryption)) => {
                Ok(match encryption.find(&self.file, connection)? {
                    FoundKey::Present(key) => FilePreparation::Ready(Some(key)),
                    FoundKey::Previous => FilePreparation::Following,
                })
            }
        }
    }

    /// Makes an empty file a journal, a journal an encrypted one, or puts its key under another master
    /// key. Any number of processes may do so at once, and any may be killed.
    fn make(&self, connection: &mut Connection) -> Result<Option<FileKey>, OpenError> {
        let refused = |source| self.file.refused(source);
        let faults = &self.options.faults;
        faults.at(place::MAKE_BEFORE_BEGIN)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(refused)?;
        let preparation = self.preparation(&transaction)?;
        if let FilePreparation::Ready(key) = preparation {
            return Ok(key);
        }
        faults.at(place::MAKE_AFTER_BEGIN)?;
        if let FilePreparation::Unmade(FileKind::Empty) = preparation {
            transaction.execute_batch(SCHEMA).map_err(refused)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(refused)?;
        }
        let key = match (&self.options.encryption, preparation) {
            (Some(encryption), FilePreparation::Following) => {
                Some(encryption.follow(&self.file, &transaction)?)
            }
            (Some(encryption), FilePreparation::Unmade(_) | FilePreparation::Ready(_)) => {
                Some(encryption.begin(&self.file, &transaction)?)
            }
            (None, _) => None,
        };
        let version = if key.is_some() { ENCRYPTED } else { CLEAR };
        transaction.pragma_update(None, "user_version", version).map_err(refused)?;
        faults.at(place::MAKE_BEFORE_COMMIT)?;
        transaction.commit().map_err(refused)?;
        faults.at(place::MAKE_AFTER_COMMIT)?;
        Ok(key)
    }

    fn no_journal(&self) -> OpenError {
        OpenError::NotAJournal { path: self.file.path().to_owned(), source: None }
    }
}

impl Connect for Database {
    type Error = OpenError;

    fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// Another connection to the same file.
    fn connect(&self) -> Result<Connection, OpenError> {
        self.configured()
    }

    fn fault_at(&self, place: &'static str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.options.faults.at(place)?)
    }
}
