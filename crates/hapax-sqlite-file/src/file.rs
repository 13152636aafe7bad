use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{
    error::{FileError, Moved, TransactError, is_busy},
    network::network_filesystem,
    permissions::{FileAge, keep_private, make_private},
};

/// The log is copied into the database whenever it is this long, in pages, and then written over:
/// that is faster than making the file longer, so longer is not better.
const CHECKPOINT_PAGES: i64 = 2000;
/// What is left of the log file after that, at most, in bytes.
const LOG_BYTES_MAX: i64 = 64 << 20;
/// Between two attempts to switch to write-ahead logging while another process does the same.
const SWITCH_PAUSE: Duration = Duration::from_millis(10);

/// A file at a path, made private and opened with write-ahead logging; once it is pinned, no other
/// file at that path is taken for it.
#[derive(Debug, Clone)]
pub struct DatabaseFile {
    path: PathBuf,
    busy: Duration,
    /// Which file it is; `None` until it is pinned, and may be made new.
    id: Option<FileId>,
}

/// What a commit has survived once it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives the loss of power: every commit is synced to disk before it is answered.
    #[default]
    Full,
    /// It survives the death of the process, but **the last commits are lost when power is**: an
    /// operation that was answered may be forgotten, and its retry runs again.
    Normal,
}

impl DatabaseFile {
    /// The file at this path, whose locks are waited for as long as `busy`. Touches nothing yet.
    pub fn new(path: PathBuf, busy: Duration) -> Self {
        Self { path, busy, id: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on the path must lead to the file it leads to now.
    pub fn pin(&mut self) -> Result<(), FileError> {
        self.id = Some(file_id(&self.path).map_err(|source| self.denied(source))?);
        Ok(())
    }

    /// Whether the path must lead to one certain file.
    pub fn is_pinned(&self) -> bool {
        self.id.is_some()
    }

    /// Refuses if the path no longer leads to the file that was opened: whoever opens the path now
    /// gets another one, and neither sees what the other writes.
    pub fn still_there(&self) -> Result<(), TransactError> {
        let found =
            file_id(&self.path).map_err(|error| TransactError::unavailable(Moved(Some(error))))?;
        if self.id.is_none_or(|opened| opened == found) {
            return Ok(());
        }
        Err(TransactError::unavailable(Moved(None)))
    }

    /// A connection that may write; the file is made, for its owner alone, if there is none and it is
    /// not pinned.
    pub fn open_to_write(&self) -> Result<Connection, FileError> {
        self.check_path()?;
        let made = if self.is_pinned() { FileAge::Before } else { make_private(&self.path) };
        let refused = |source| self.refused(source);
        let connection = self.connect().map_err(refused)?;
        if made == FileAge::Now {
            keep_private(&self.path).map_err(|source| self.denied(source))?;
        }
        if connection.is_readonly("main").map_err(refused)? {
            return Err(FileError::ReadOnly(self.path.clone(), None));
        }
        Ok(connection)
    }

    /// A connection as SQLite opens it.
    pub fn connect(&self) -> rusqlite::Result<Connection> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, !self.is_pinned());
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.busy)?;
        Ok(connection)
    }

    /// Says how a connection writes the log, and when it syncs.
    pub fn configure(
        &self,
        connection: &Connection,
        durability: Durability,
    ) -> Result<(), FileError> {
        let refused = |source| self.refused(source);
        let set = |pragma, value| connection.pragma_update(None, pragma, value).map_err(refused);
        set("wal_autocheckpoint", CHECKPOINT_PAGES)?;
        set("journal_size_limit", LOG_BYTES_MAX)?;
        let synchronous = match durability {
            Durability::Full => "FULL",
            Durability::Normal => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous).map_err(refused)
    }

    /// Switches the file to write-ahead logging, for everybody who opens it.
    pub fn log_ahead(&self, connection: &Connection) -> Result<(), FileError> {
        let mode = self.switch(connection).map_err(|source| self.refused(source))?;
        if mode == "wal" {
            return Ok(());
        }
        Err(FileError::NoWriteAheadLog(self.path.clone(), mode))
    }

    /// What can be said without SQLite is said better without it.
    pub fn check_path(&self) -> Result<(), FileError> {
        let directory = match self.path.parent() {
            Some(directory) if directory.as_os_str().is_empty() => Path::new("."),
            Some(directory) => directory,
            None => Path::new("/"),
        };
        if !directory.is_dir() {
            return Err(FileError::MissingDirectory(directory.to_owned()));
        }
        if self.path.is_dir() {
            return Err(FileError::Directory(self.path.clone()));
        }
        match network_filesystem(directory) {
            Some(filesystem) => Err(FileError::Network(self.path.clone(), filesystem)),
            None => Ok(()),
        }
    }

    /// What it means that SQLite could not open or prepare the file.
    pub fn refused(&self, source: rusqlite::Error) -> FileError {
        let path = self.path.clone();
        match source.sqlite_error_code() {
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                FileError::ReadOnly(path, Some(source))
            }
            Some(ErrorCode::NotADatabase) => FileError::NotADatabase(path, source),
            Some(ErrorCode::DatabaseCorrupt) => FileError::Damaged(path, Box::new(source)),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                FileError::Locked { path, waited: self.busy, source }
            }
            Some(ErrorCode::DiskFull) => FileError::Full(path, source),
            _ => FileError::Sqlite(path, source),
        }
    }

    /// The operating system refused something the file needs.
    pub fn denied(&self, source: io::Error) -> FileError {
        FileError::System(self.path.clone(), source)
    }

    /// SQLite does not wait for a lock here where another process switches too, so this does.
    fn switch(&self, connection: &Connection) -> rusqlite::Result<String> {
        let mut pauses = self.busy.as_millis() / SWITCH_PAUSE.as_millis();
        loop {
            let switched =
                connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
            match switched {
                Err(error) if is_busy(&error) && pauses > 0 => {
                    pauses -= 1;
                    thread::sleep(SWITCH_PAUSE);
                }
                switched => return switched,
            }
        }
    }
}

/// Device and inode, where there are such numbers.
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|_| (0, 0))
}
