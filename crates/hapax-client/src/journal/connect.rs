//! How the file is opened, made and recognised.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::{
    error::{JournalError, Moved, OpenError},
    options::JournalOptions,
    place,
};

const SCHEMA: &str = include_str!("schema.sql");
/// The version of the file this code writes.
const VERSION: i64 = 1;
/// Says in the file's header that it is a journal: "HpxJ".
const APPLICATION_ID: i64 = 0x4870_784a;
/// The log is copied into the database whenever it is this long, in pages.
const CHECKPOINT_PAGES: i64 = 2000;
/// What is left of the log file after that, at most, in bytes.
const LOG_BYTES_MAX: i64 = 64 << 20;
/// Between two attempts to switch to write-ahead logging while another process does the same.
const SWITCH_PAUSE: Duration = Duration::from_millis(10);

/// A journal's file, and how it is to be opened.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    pub(super) options: JournalOptions,
    /// Which file it is; `None` until it was opened for the first time, and may be made new.
    file: Option<FileId>,
}

impl Database {
    pub(super) fn new(path: PathBuf, options: JournalOptions) -> Result<Self, OpenError> {
        options.check()?;
        Ok(Self { path, options, file: None })
    }

    /// A connection to a file that is a journal of a known version, made if there is none yet.
    pub(super) fn connect(&mut self) -> Result<Connection, OpenError> {
        self.look()?;
        if self.file.is_none() {
            create(&self.path).map_err(|error| self.not_created(error))?;
        }
        let refused = |source| self.refused(source);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.path, flags).map_err(refused)?;
        connection.busy_timeout(self.options.busy).map_err(refused)?;
        if connection.is_readonly("main").map_err(refused)? {
            return Err(OpenError::ReadOnly { path: self.path.clone(), source: None });
        }
        let is_current = self.is_current(&connection)?;
        if self.file.is_some() && !is_current {
            return Err(OpenError::NotAJournal { path: self.path.clone(), source: None });
        }
        self.configure(&connection)?;
        if !is_current {
            self.make(&mut connection)?;
        }
        if self.file.is_none() {
            self.file = Some(file_id(&self.path).map_err(OpenError::System)?);
        }
        Ok(connection)
    }

    /// Refuses if the path no longer leads to the file that was opened: whoever opens the path now
    /// gets another one, and neither sees what the other pursues.
    pub(super) fn still_there(&self) -> Result<(), JournalError> {
        let found =
            file_id(&self.path).map_err(|error| JournalError::unavailable(Moved(Some(error))))?;
        if self.file.is_none_or(|opened| opened == found) {
            return Ok(());
        }
        Err(JournalError::unavailable(Moved(None)))
    }

    /// Whether it is a journal already; `false` if it is empty. Anything else is refused.
    fn is_current(&self, connection: &Connection) -> Result<bool, OpenError> {
        // One statement, because another process may be making it.
        let look = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
                    FROM pragma_application_id, pragma_user_version";
        let found: (i64, i64, i64) = connection
            .query_row(look, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(|source| self.refused(source))?;
        let path = self.path.clone();
        match found {
            (APPLICATION_ID, VERSION, _) => Ok(true),
            (APPLICATION_ID, found, _) if found > VERSION => {
                Err(OpenError::NewerVersion { path, found, known: VERSION })
            }
            (0, 0, 0) => Ok(false),
            _ => Err(OpenError::NotAJournal { path, source: None }),
        }
    }

    /// Every commit is on disk before it is answered: a request that is not must not be sent.
    fn configure(&self, connection: &Connection) -> Result<(), OpenError> {
        let refused = |source| self.refused(source);
        let mode = self.switch(connection).map_err(refused)?;
        if mode != "wal" {
            return Err(OpenError::NoWriteAheadLog { path: self.path.clone(), mode });
        }
        let set = |pragma, value| connection.pragma_update(None, pragma, value).map_err(refused);
        set("wal_autocheckpoint", CHECKPOINT_PAGES)?;
        set("journal_size_limit", LOG_BYTES_MAX)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(refused)
    }

    /// Makes an empty file a journal. Any number of processes may do so at once, and any may be
    /// killed.
    fn make(&self, connection: &mut Connection) -> Result<(), OpenError> {
        let refused = |source| self.refused(source);
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

    /// SQLite does not wait for a lock here where another process switches too, so this does.
    fn switch(&self, connection: &Connection) -> rusqlite::Result<String> {
        let mut pauses = self.options.busy.as_millis() / SWITCH_PAUSE.as_millis();
        loop {
            let switched =
                connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
            let busy = |error: &rusqlite::Error| {
                error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
            };
            match switched {
                Err(error) if busy(&error) && pauses > 0 => {
                    pauses -= 1;
                    std::thread::sleep(SWITCH_PAUSE);
                }
                switched => return switched,
            }
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
        // SQLite would take the first two for databases that are no files.
        let no_file = ["", ":memory:"].iter().any(|name| self.path.as_os_str() == *name);
        if no_file || self.path.is_dir() {
            return Err(OpenError::ReadOnly { path: self.path.clone(), source: None });
        }
        match network_filesystem(directory) {
            Some(filesystem) => Err(OpenError::Network { path: self.path.clone(), filesystem }),
            None => Ok(()),
        }
    }

    fn not_created(&self, error: io::Error) -> OpenError {
        OpenError::ReadOnly { path: self.path.clone(), source: Some(Box::new(error)) }
    }

    fn refused(&self, source: rusqlite::Error) -> OpenError {
        let path = self.path.clone();
        match source.sqlite_error_code() {
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                OpenError::ReadOnly { path, source: Some(Box::new(source)) }
            }
            Some(ErrorCode::NotADatabase) => OpenError::NotAJournal { path, source: Some(source) },
            Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                OpenError::Locked { path, waited: self.options.busy, source }
            }
            Some(ErrorCode::DiskFull) => OpenError::Full { path, source },
            _ => OpenError::Sqlite { path, source },
        }
    }
}

/// Makes the file for its owner's eyes alone, if there is none; SQLite gives the files beside it
/// the same mode.
fn create(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
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
