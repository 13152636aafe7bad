//! How the file is opened: by the writer, and by each reader.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use hapax_core::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{
    error::{MigrateError, Moved, OpenError},
    options::{Durability, Options},
};

/// The size of a page of a new file, in bytes. Ids are random, so every claim dirties an index page of its own:
/// small pages keep the log small.
const PAGE_BYTES: i64 = 4096;
/// How much of the file each connection keeps in memory, in KiB; the system caches the rest, and
/// a larger cache here measured slower. The file is not mapped: where it is, a failing disk kills
/// the process instead of failing a read.
const CACHE_KIB: i64 = 16 << 10;
/// The log is copied into the database whenever it is this long, in pages, and then written over:
/// that is faster than making the file longer, so longer is not better.
const CHECKPOINT_PAGES: i64 = 2000;
/// What is left of the log file after that, at most, in bytes.
const LOG_BYTES_MAX: i64 = 64 << 20;
/// Between two attempts to switch to write-ahead logging while another process does the same.
const SWITCH_PAUSE: Duration = Duration::from_millis(10);

/// A database file, and how it is to be opened.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    /// Which file it is; `None` until it was opened for the first time, and may be made new.
    file: Option<FileId>,
    access: Access,
}

/// What may be done with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Read,
}

impl Database {
    pub(crate) fn new(path: PathBuf, options: Options) -> Self {
        Self { path, options, file: None, access: Access::Write }
    }

    /// A file that is there and is not to be written.
    pub(crate) fn to_read(path: PathBuf, options: Options) -> Self {
        Self { path, options, file: None, access: Access::Read }
    }

    /// From now on the path must lead to the file it leads to now.
    pub(crate) fn pin(&mut self) -> Result<(), OpenError> {
        self.file = Some(file_id(&self.path).map_err(OpenError::System)?);
        Ok(())
    }

    /// Refuses if the path no longer leads to the file that was opened: whoever opens the path now
    /// gets another one, and neither sees the other's claims.
    pub(crate) fn still_there(&self) -> Result<(), StoreError> {
        let found =
            file_id(&self.path).map_err(|error| StoreError::unavailable(Moved(Some(error))))?;
        if self.file.is_none_or(|opened| opened == found) {
            return Ok(());
        }
        Err(StoreError::unavailable(Moved(None)))
    }

    /// A connection that may write.
    pub(crate) fn writer(&self) -> Result<Connection, OpenError> {
        self.look()?;
        let made = if self.file.is_none() { make_private(&self.path) } else { Made::Before };
        let connection = self.open().map_err(|source| self.refused(source))?;
        if made == Made::Now {
            keep_private(&self.path).map_err(OpenError::System)?;
        }
        let read_only = connection.is_readonly("main").map_err(|source| self.refused(source))?;
        if read_only {
            return Err(OpenError::ReadOnly { path: self.path.clone(), source: None });
        }
        self.configure(&connection).map_err(|source| self.refused(source))?;
        self.log_ahead(&connection)?;
        Ok(connection)
    }

    /// The first connection to a file that is not to be written.
    pub(crate) fn first_reader(&self) -> Result<Connection, OpenError> {
        self.look()?;
        self.reader().map_err(|source| {
            let refused = self.refused(source);
            if let OpenError::ReadOnly { path, source: Some(source) } = refused {
                OpenError::Unreadable { path, source }
            } else {
                refused
            }
        })
    }

    /// A connection that only reads.
    pub(crate) fn reader(&self) -> rusqlite::Result<Connection> {
        let connection = match self.access {
            Access::Write => self.open()?,
            Access::Read => self.open_to_read()?,
        };
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    /// What a failure to migrate means, and what to do about it.
    pub(crate) fn not_migrated(&self, error: MigrateError) -> OpenError {
        let path = self.path.clone();
        match error {
            MigrateError::NewerSchema { found, known } => {
                OpenError::NewerSchema { path, found, known }
            }
            MigrateError::Damaged { .. } => OpenError::Damaged { path, source: Box::new(error) },
            MigrateError::System(source) => OpenError::System(source),
            MigrateError::Sqlite(source) => self.refused(source),
        }
    }

    /// What a failure to open means, and what to do about it.
    pub(crate) fn refused(&self, source: rusqlite::Error) -> OpenError {
        let path = self.path.clone();
        match source.sqlite_error_code() {
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                match self.access {
                    Access::Write => OpenError::ReadOnly { path, source: Some(source) },
                    Access::Read => OpenError::Unreadable { path, source },
                }
            }
            Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path, source },
            Some(ErrorCode::DatabaseCorrupt) => {
                OpenError::Damaged { path, source: Box::new(source) }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                OpenError::Locked { path, waited: self.options.busy, source }
            }
            Some(ErrorCode::DiskFull) => OpenError::Full { path, source },
            _ => OpenError::Sqlite { path, source },
        }
    }

    /// What can be said without SQLite is said better without it.
    fn look(&self) -> Result<(), OpenError> {
        let directory = match self.path.parent() {
            Some(directory) if directory.as_os_str().is_empty() => Path::new("."),
            Some(directory) => directory,
            None => Path::new("/"),
        };
        if !directory.is_dir() {
            return Err(OpenError::MissingDirectory { directory: directory.to_owned() });
        }
        if self.path.is_dir() {
            return Err(OpenError::Directory { path: self.path.clone() });
        }
        match network_filesystem(directory) {
            Some(filesystem) => Err(OpenError::Network { path: self.path.clone(), filesystem }),
            None => Ok(()),
        }
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, self.file.is_none());
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.options.busy)?;
        Ok(connection)
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
        let opened = Connection::open_with_flags(&self.path, flags).and_then(readable);
        let is_shut = |error: &rusqlite::Error| {
            let codes = [ErrorCode::CannotOpen, ErrorCode::ReadOnly];
            error.sqlite_error_code().is_some_and(|code| codes.contains(&code))
                && self.path.is_file()
        };
        match opened {
            Err(error) if is_shut(&error) && !self.has_log() => {
                let flags = flags | OpenFlags::SQLITE_OPEN_URI;
                Connection::open_with_flags(as_it_is(&self.path), flags).and_then(readable)
            }
            opened => opened,
        }
    }

    /// Whether something is in the log that is not in the file.
    fn has_log(&self) -> bool {
        let mut path = self.path.clone().into_os_string();
        path.push("-wal");
        std::fs::metadata(path).is_ok_and(|log| log.len() > 0)
    }

    fn configure(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
        let synchronous = match self.options.durability {
            Durability::Full => "FULL",
            Durability::Normal => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
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
        let path = self.path.clone();
        if holds > 0 {
            let mode: String = connection
                .pragma_query_value(None, "journal_mode", |row| row.get(0))
                .map_err(refused)?;
            return if mode == "wal" { Ok(()) } else { Err(OpenError::JournalMode { path, mode }) };
        }
        let mode = self.switch(connection).map_err(refused)?;
        if mode == "wal" { Ok(()) } else { Err(OpenError::NoWriteAheadLog { path, mode }) }
    }

    /// SQLite does not wait for a lock here where another process switches too, so this does.
    fn switch(&self, connection: &Connection) -> rusqlite::Result<String> {
        let mut pauses = self.options.busy.as_millis() / SWITCH_PAUSE.as_millis();
        loop {
            let switched =
                connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
            match switched {
                Err(error) if is_busy(&error) && pauses > 0 => {
                    pauses -= 1;
                    std::thread::sleep(SWITCH_PAUSE);
                }
                switched => return switched,
            }
        }
    }
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

/// When a file came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

/// Who may read and write a file of the store: its owner alone. It holds answers and requests as they
/// were. SQLite gives its other files the rights of the first.
#[cfg(unix)]
const PRIVATE_MODE: u32 = 0o600;

/// Makes the file before SQLite does, so that nobody else can ever open it. The rights of a file that
/// is there are its owner's to decide; they are said aloud if they are wider.
///
/// A file that is there is not opened: closing it again would free the locks that SQLite holds on it.
#[cfg(unix)]
fn make_private(path: &Path) -> Made {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    if let Ok(found) = std::fs::metadata(path) {
        let mode = found.permissions().mode() & 0o777;
        if mode & !PRIVATE_MODE != 0 {
            let (path, mode) = (path.display(), format!("{mode:o}"));
            tracing::warn!(%path, mode, "others may read the store; `chmod 600` its files");
        }
        return Made::Before;
    }
    if path == Path::new(":memory:") {
        return Made::Before;
    }
    let mut options = std::fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(PRIVATE_MODE).open(path) {
        Ok(_) => Made::Now,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Made::Now,
        // What keeps the file from being made is better told by SQLite.
        Err(_) => Made::Before,
    }
}

/// A link that led nowhere was followed by SQLite alone, which knows no such rights.
#[cfg(unix)]
fn keep_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    std::fs::set_permissions(path, std::fs::Permissions::from_mode(PRIVATE_MODE))
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> Made {
    Made::Before
}

#[cfg(not(unix))]
fn keep_private(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Device and inode, where there are such numbers.
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;

    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> io::Result<FileId> {
    std::fs::metadata(path).map(|_| (0, 0))
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// The kind of network filesystem this directory is on, if it is on one that is known.
#[cfg(target_os = "linux")]
fn network_filesystem(directory: &Path) -> Option<&'static str> {
    const KNOWN: [(u64, &str); 8] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x0102_1997, "9P"),
        (0x5346_414f, "AFS"),
        (0x00c3_6400, "Ceph"),
        (0x0bd0_0bd0, "Lustre"),
    ];
    let magic = u64::try_from(rustix::fs::statfs(directory).ok()?.f_type).ok()?;
    KNOWN.into_iter().find_map(|(known, name)| (known == magic).then_some(name))
}

#[cfg(not(target_os = "linux"))]
fn network_filesystem(_: &Path) -> Option<&'static str> {
    None
}
