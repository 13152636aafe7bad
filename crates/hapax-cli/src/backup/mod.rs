//! `hapax backup`: a copy of an SQLite store that is in use.
//!
//! The copy is made under a name of its own beside its place and gets its own name once it is whole,
//! checked and on disk: whoever sees the file sees a good one. A command that is killed leaves the
//! place free.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use hapax::sqlite;
use rusqlite::{Connection, OpenFlags, backup::Backup};
use tempfile::NamedTempFile;

use crate::{
    args::BackupArgs,
    store::{InvalidAddress, StoreAddress},
};

/// Copies the store, and says what was copied.
pub(crate) fn run(args: &BackupArgs) -> Result<(), BackupCommandError> {
    let path = match args.store.parse()? {
        StoreAddress::Sqlite(path) => path,
        StoreAddress::Postgres(_) => return Err(BackupCommandError::Postgres),
        StoreAddress::Memory => return Err(BackupCommandError::Memory),
    };
    let copied = copy(&path, &args.to)?;
    let StoreCopy { bytes, version } = copied;
    let (from, to) = (path.display(), args.to.display());
    writeln!(io::stdout(), "{from} was copied to {to}: {bytes} bytes, schema version {version}")
        .map_err(BackupCommandError::Print)
}

/// What a copy holds.
struct StoreCopy {
    bytes: u64,
    version: usize,
}

fn copy(from: &Path, to: &Path) -> Result<StoreCopy, BackupCommandError> {
    let unmarked = |source| BackupCommandError::Unmarked { to: to.to_owned(), source };
    let taken = || BackupCommandError::Taken { to: to.to_owned() };
    let unwritable = |source| BackupCommandError::Unwritable { to: to.to_owned(), source };
    if to.symlink_metadata().is_ok() {
        return Err(taken());
    }
    let unreadable = |source| BackupCommandError::Unreadable { from: from.to_owned(), source };
    let source = open(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(unreadable)?;
    let damaged = |source| BackupCommandError::NoStore { from: from.to_owned(), source };
    if sqlite::schema_version(&source).map_err(damaged)? == 0 {
        return Err(BackupCommandError::Empty { from: from.to_owned() });
    }
    let dir =
        to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    // For its owner alone, as the store is.
    let made = tempfile::Builder::new().prefix(".hapax-backup-").tempfile_in(dir);
    let made = made.map_err(unwritable)?;
    copy_pages(&source, made.path()).map_err(unreadable)?;
    mark(made.path()).map_err(unmarked)?;
    let version = check(&made)?;
    made.as_file().sync_all().map_err(unwritable)?;
    let file = made.persist_noclobber(to).map_err(|refused| {
        let is_taken = refused.error.kind() == io::ErrorKind::AlreadyExists;
        if is_taken { taken() } else { unwritable(refused.error) }
    })?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(unwritable)?;
    Ok(StoreCopy { bytes: file.metadata().map_err(unwritable)?.len(), version })
}

fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(sqlite::Options::default().busy)?;
    Ok(connection)
}

/// Copies all pages in one read transaction: who writes meanwhile is not held up, and a copy by pieces
/// would begin again with every commit.
fn copy_pages(source: &Connection, to: &Path) -> rusqlite::Result<()> {
    let mut target = open(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Nobody but us knows the file: one that is not whole is thrown away.
    target.pragma_update(None, "journal_mode", "OFF")?;
    let backup = Backup::new(source, &mut target)?;
    backup.run_to_completion(i32::MAX, sqlite::Options::default().busy, None)
}

/// Has the copy say that it is one: a store that was restored from it is quarantined wherever it is put.
fn mark(copy: &Path) -> rusqlite::Result<()> {
    let mut connection = open(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    sqlite::mark_copy(&mut connection)?;
    // What is in its log goes into the file, and the log away.
    connection.close().map_err(|(_, error)| error)
}

/// Reads all of the copy; the version of its schema.
fn check(copy: &NamedTempFile) -> Result<usize, BackupCommandError> {
    let bad = |source| BackupCommandError::Bad { source };
    let mut address = String::from("file:");
    // What has a meaning in an address is written by its number.
    for byte in copy.path().as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                address.push(char::from(*byte));
            }
            byte => address.push_str(&format!("%{byte:02x}")),
        }
    }
    // Nobody changes it: SQLite need not make files beside it.
    address.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = open(Path::new(&address), flags).map_err(bad)?;
    let found: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(bad)?;
    if found != "ok" {
        return Err(BackupCommandError::Damaged { found });
    }
    let version = sqlite::schema_version(&connection);
    version.map_err(|source| BackupCommandError::NoStore { from: copy.path().to_owned(), source })
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupCommandError {
    #[error("--store or HAPAX_STORE is no store's address")]
    Address(#[from] InvalidAddress),
    #[error(
        "a PostgreSQL store is backed up by PostgreSQL's own means: pg_basebackup with archived logs, \
         or pg_dump"
    )]
    Postgres,
    #[error("a store in memory cannot be copied from outside")]
    Memory,
    #[error("{} is there already; name a file that is not", to.display())]
    Taken { to: PathBuf },
    #[error("{} cannot be written", to.display())]
    Unwritable {
        to: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} cannot be read", from.display())]
    Unreadable {
        from: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("{} is no store", from.display())]
    NoStore {
        from: PathBuf,
        #[source]
        source: sqlite::MigrateError,
    },
    #[error("{} holds no records of Hapax", from.display())]
    Empty { from: PathBuf },
    #[error("{} cannot be marked as a copy", to.display())]
    Unmarked {
        to: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the copy cannot be read")]
    Bad {
        #[source]
        source: rusqlite::Error,
    },
    #[error("the copy is damaged, and so may be the store: {found}")]
    Damaged { found: String },
    #[error("cannot print the answer")]
    Print(#[source] io::Error),
}
