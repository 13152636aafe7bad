//! How the file is opened, made and recognised.

use std::{
    error::Error,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use hapax_sqlite_file::{Connect, DatabaseFile, Durability, FileError};
use rusqlite::{Connection, TransactionBehavior};

use super::{error::OpenError, options::JournalOptions, place};

const SCHEMA: &str = include_str!("schema.sql");
/// The version of the file this code writes.
const VERSION: i64 = 1;
/// Says in the file's header that it is a journal: "HpxJ".
const APPLICATION_ID: i64 = 0x4870_784a;

/// A journal's file, and how it is to be opened.
#[derive(Debug)]
pub(super) struct Database {
    file: DatabaseFile,
    pub(super) options: JournalOptions,
    /// Transactions that were committed and may have written something.
    pub(super) commits: Arc<AtomicU64>,
}

impl Database {
    /// The file of a journal and a connection to it, made if there is none yet.
    pub(super) fn open(
        path: PathBuf,
        options: JournalOptions,
    ) -> Result<(Self, Connection), OpenError> {
        options.check()?;
        let file = DatabaseFile::new(path, options.busy);
        let mut database = Self { file, options, commits: Arc::default() };
        let connection = database.connect()?;
        database.file.pin()?;
        Ok((database, connection))
    }

    /// Whether it is a journal already; `false` if it is empty. Anything else is refused.
    fn is_current(&self, connection: &Connection) -> Result<bool, OpenError> {
        // One statement, because another process may be making it.
        let look = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
                    FROM pragma_application_id, pragma_user_version";
        let found: (i64, i64, i64) = connection
            .query_row(look, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(|source| self.file.refused(source))?;
        let path = self.file.path().to_owned();
        match found {
            (APPLICATION_ID, VERSION, _) => Ok(true),
            (APPLICATION_ID, found, _) if found > VERSION => {
                Err(OpenError::NewerVersion { path, found, known: VERSION })
            }
            (0, 0, 0) => Ok(false),
            _ => Err(OpenError::NotAJournal { path, source: None }),
        }
    }

    /// Makes an empty file a journal. Any number of processes may do so at once, and any may be
    /// killed.
    fn make(&self, connection: &mut Connection) -> Result<(), OpenError> {
        let refused = |source| self.file.refused(source);
        let faults = &self.options.faults;
        faults.at(place::MAKE_BEFORE_BEGIN)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(refused)?;
        if !self.is_current(&transaction)? {
            faults.at(place::MAKE_AFTER_BEGIN)?;
            transaction.execute_batch(SCHEMA).map_err(refused)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(refused)?;
            transaction.pragma_update(None, "user_version", VERSION).map_err(refused)?;
            faults.at(place::MAKE_BEFORE_COMMIT)?;
            transaction.commit().map_err(refused)?;
            faults.at(place::MAKE_AFTER_COMMIT)?;
        }
        Ok(())
    }
}

impl Connect for Database {
    type Error = OpenError;

    fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// Every commit is on disk before it is answered: a request that is not must not be sent.
    fn connect(&self) -> Result<Connection, OpenError> {
        let path = self.file.path();
        // SQLite would take the first two for databases that are no files.
        if path.as_os_str().is_empty() || path.as_os_str() == ":memory:" || path.is_dir() {
            return Err(FileError::ReadOnly(path.to_owned(), None).into());
        }
        let mut connection = self.file.open_to_write()?;
        let is_current = self.is_current(&connection)?;
        if self.file.is_pinned() && !is_current {
            return Err(OpenError::NotAJournal { path: path.to_owned(), source: None });
        }
        self.file.configure(&connection, Durability::Full)?;
        self.file.log_ahead(&connection)?;
        if !is_current {
            self.make(&mut connection)?;
        }
        Ok(connection)
    }

    fn fault_at(&self, place: &'static str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.options.faults.at(place)?)
    }
}
