//! How the file is opened: by the writer, and by each reader.

use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::Arc,
};

use hapax_sqlite_file::{Connect, DatabaseFile, FileError};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::{
    directory::{Directory, SharedDirectory},
    error::{MigrateError, OpenError},
    log,
    options::Options,
};

/// The size of a page of a new file, in bytes. Every commit writes the last page of a few tables again:
/// small pages keep that small.
const PAGE_BYTES: i64 = 4096;
/// How much of the file each connection keeps in memory, in KiB; the system caches the rest, and
/// a larger cache here measured slower. The file is not mapped: where it is, a failing disk kills
/// the process instead of failing a read.
const CACHE_KIB: i64 = 16 << 10;
/// Statements each connection keeps ready: all of ours.
const STATEMENTS: usize = 64;

/// A database file, and how it is to be opened.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    file: DatabaseFile,
    pub(crate) options: Options,
    access: FileAccess,
    /// Where operations are; `None` where the file alone is asked.
    directory: Option<SharedDirectory>,
}

/// What may be done with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileAccess {
    Write,
    Read,
}

impl Database {
    pub(crate) fn new(path: PathBuf, options: Options) -> Self {
        let (file, access) = (DatabaseFile::new(path, options.busy), FileAccess::Write);
        Self { file, options, access, directory: None }
    }

    /// A file that is there and is not to be written.
    pub(crate) fn to_read(path: PathBuf, options: Options) -> Self {
        Self { access: FileAccess::Read, ..Self::new(path, options) }
    }

    /// From now on the path must lead to the file it leads to now.
    pub(crate) fn pin(&mut self) -> Result<(), OpenError> {
        Ok(self.file.pin()?)
    }

    /// From now on operations are found through memory, which is loaded with where they are.
    pub(crate) fn remember(&mut self, connection: &mut Connection) -> Result<(), OpenError> {
        let keys_max = self.options.keys_in_memory_max;
        let loaded = index_what_is_left(connection).and_then(|()| {
            let snapshot = connection.transaction()?;
            Directory::load(&snapshot, keys_max)
        });
        let directory = loaded.map_err(|source| self.refused(source))?;
        self.directory = Some(SharedDirectory::new(directory));
        Ok(())
    }

    /// Where operations are, as known now: to be asked for before the snapshot it is used in is taken.
    pub(crate) fn directory(&self) -> Option<Arc<Directory>> {
        self.directory.as_ref().map(SharedDirectory::current)
    }

    /// Loads what is remembered anew, if it holds more than it should.
    pub(crate) fn remember_less(&self, snapshot: &Connection) -> rusqlite::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let keys_max = self.options.keys_in_memory_max;
        let keys = log::keys_about(&log::ready(log::live_runs(&mut &*snapshot))?);
        if directory.current().is_overgrown(keys_max, keys) {
            directory.replace(Directory::load(snapshot, keys_max)?);
        }
        Ok(())
    }

    /// The first connection to a file that is not to be written.
    pub(crate) fn first_reader(&self) -> Result<Connection, OpenError> {
        self.file.check_path()?;
        self.reader().map_err(|source| self.refused(source))
    }

    /// A connection that only reads.
    pub(crate) fn reader(&self) -> rusqlite::Result<Connection> {
        let connection = match self.access {
            FileAccess::Write => self.file.connect()?,
            FileAccess::Read => self.open_to_read()?,
        };
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    /// What a failure to migrate means, and what to do about it.
    pub(crate) fn not_migrated(&self, error: MigrateError) -> OpenError {
        let path = self.file.path().to_owned();
        match error {
            MigrateError::NewerSchema { found, known } => {
                OpenError::NewerSchema { path, found, known }
            }
            MigrateError::Damaged { .. } => FileError::Damaged(path, Box::new(error)).into(),
            MigrateError::System(source) => self.file.denied(source).into(),
            MigrateError::Sqlite(source) => self.refused(source),
        }
    }

    /// What a failure to open means: a file that is only read need not be writable.
    fn refused(&self, source: rusqlite::Error) -> OpenError {
        match (self.access, self.file.refused(source)) {
            (FileAccess::Read, FileError::ReadOnly(path, Some(source))) => {
                OpenError::Unreadable { path, source }
            }
            (FileAccess::Read | FileAccess::Write, refused) => OpenError::File(refused),
        }
    }

    /// Opens it without the right to write. A log that is not there cannot be made then, and what is
    /// in the file is all there is.
    fn open_to_read(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let readable = |connection: Connection| {
            connection.busy_timeout(self.options.busy)?;
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            Ok(connection)
        };
        let opened = Connection::open_with_flags(self.file.path(), flags).and_then(readable);
        let is_shut = |error: &rusqlite::Error| {
            let codes = [ErrorCode::CannotOpen, ErrorCode::ReadOnly];
            error.sqlite_error_code().is_some_and(|code| codes.contains(&code))
                && self.file.path().is_file()
        };
        match opened {
            Err(error) if is_shut(&error) && !self.has_log() => {
                let flags = flags | OpenFlags::SQLITE_OPEN_URI;
                Connection::open_with_flags(as_it_is(self.file.path()), flags).and_then(readable)
            }
            opened => opened,
        }
    }

    /// Whether something is in the log that is not in the file.
    fn has_log(&self) -> bool {
        let mut path = self.file.path().as_os_str().to_owned();
        path.push("-wal");
        std::fs::metadata(path).is_ok_and(|log| log.len() > 0)
    }

    fn configure(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        if let Some(bytes) = self.options.size_bytes_max {
            // A file that was there before keeps the pages it has.
            let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            let pages = (i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1)).max(1);
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        Ok(())
    }

    /// Sees to write-ahead logging: a file that holds nothing yet is switched to it, one that holds
    /// something must use it already.
    fn log_ahead(&self, connection: &Connection) -> Result<(), OpenError> {
        let refused = |source| self.refused(source);
        // Tables first, then the mode: whoever makes the file at the same time switches it first.
        let holds: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(refused)?;
        if holds == 0 {
            return Ok(self.file.log_ahead(connection)?);
        }
        let mode: String = connection
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .map_err(refused)?;
        if mode == "wal" {
            return Ok(());
        }
        Err(OpenError::JournalMode { path: self.file.path().to_owned(), mode })
    }
}

impl Connect for Database {
    type Error = OpenError;

    fn file(&self) -> &DatabaseFile {
        &self.file
    }

    fn connect(&self) -> Result<Connection, OpenError> {
        let connection = self.file.open_to_write()?;
        self.configure(&connection).map_err(|source| self.refused(source))?;
        self.file.configure(&connection, self.options.durability)?;
        self.log_ahead(&connection)?;
        Ok(connection)
    }

    fn fault_at(&self, place: &'static str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.options.faults.at(place)?)
    }
}

/// Writes the index of rows that have none. Whoever appends rows writes it in passing: there is much to
/// do only where something else has filled the file.
fn index_what_is_left(connection: &mut Connection) -> rusqlite::Result<()> {
    let mut newest = log::ready(log::newest_row(&mut &*connection))?;
    let mut is_behind = !log::ready(log::is_indexed(&mut &*connection, newest))?;
    while is_behind {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        newest = log::ready(log::newest_row(&mut &*transaction))?;
        is_behind = log::ready(log::index_rows(&mut &*transaction, (0, newest)))?;
        transaction.commit()?;
    }
    Ok(())
}

/// The URI of a file that nobody writes.
fn as_it_is(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}
