//! What cannot be opened is refused with what to do about it.

use std::{fs, path::Path, sync::Barrier, thread, time::Duration};

use hapax_core::Store as _;
use hapax_sqlite::{FileError, OpenError, Options, Store};

use crate::backend::Sqlite;

fn refusal(path: impl AsRef<Path>, options: Options) -> OpenError {
    Store::open(path.as_ref(), options).expect_err("it is refused")
}

fn impatient(sqlite: &Sqlite) -> Options {
    Options { busy: Duration::from_millis(20), ..sqlite.options() }
}

#[test]
fn a_missing_directory_is_named() {
    let sqlite = Sqlite::new();
    let path = sqlite.path().with_file_name("missing").join("hapax.db");
    let refusal = refusal(&path, sqlite.options());
    assert!(matches!(refusal, OpenError::File(FileError::MissingDirectory(..))), "{refusal:?}");
    assert!(refusal.to_string().contains("create it"), "{refusal}");
    assert!(!path.exists());
}

#[cfg(unix)]
#[test]
fn the_files_of_a_new_store_are_for_their_owner_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    for is_link in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("hapax.db");
        if is_link {
            symlink(directory.path().join("elsewhere.db"), &path).expect("a link");
        }
        let store = Store::open(&path, Options::default()).expect("opened");
        let files = fs::read_dir(directory.path()).expect("listed");
        let files = files.map(|file| file.expect("listed").path()).collect::<Vec<_>>();
        assert_eq!(files.len(), if is_link { 4 } else { 3 }, "{files:?}");
        for file in files {
            let mode = fs::metadata(&file).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.display());
        }
        drop(store);
    }
}

#[cfg(unix)]
#[test]
fn the_rights_of_a_file_that_was_there_are_its_owners_to_decide() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hapax.db");
    drop(Store::open(&path, Options::default()).expect("opened"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
    drop(Store::open(&path, Options::default()).expect("opened"));
    let mode = fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let sqlite = Sqlite::new();
    let text = "not a database ".repeat(1000);
    fs::write(sqlite.path(), &text).expect("written");
    let refusal = refusal(sqlite.path(), sqlite.options());
    assert!(matches!(refusal, OpenError::File(FileError::NotADatabase(..))), "{refusal:?}");
    assert_eq!(fs::read_to_string(sqlite.path()).expect("read"), text);
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_refused() {
    // Not even root may write these.
    for path in ["/proc/version", "/proc/hapax.db"] {
        let refusal = refusal(path, Options::default());
        assert!(matches!(refusal, OpenError::File(FileError::ReadOnly(..))), "{path}: {refusal:?}");
        assert!(refusal.to_string().contains("write access"), "{refusal}");
    }
}

#[test]
fn a_directory_is_not_taken_for_a_file() {
    let refusal = refusal("/proc", Options::default());
    assert!(matches!(refusal, OpenError::File(FileError::Directory(..))), "{refusal:?}");
}

#[test]
fn a_file_that_is_only_looked_at_is_neither_made_nor_migrated() {
    let directory = tempfile::tempdir().expect("a directory");
    let look = |name: &str| Store::open_to_read(directory.path().join(name), Options::default());
    let refusal = look("missing.db").expect_err("there is nothing");
    assert!(matches!(refusal, OpenError::Unreadable { .. }), "{refusal:?}");
    assert!(!directory.path().join("missing.db").exists());
    let own = directory.path().join("own.db");
    let connection = rusqlite::Connection::open(&own).expect("a file of its own");
    connection.execute_batch("CREATE TABLE mine (a)").expect("a table of its own");
    let refusal = look("own.db").expect_err("it has no tables of ours");
    assert!(matches!(refusal, OpenError::NotMigrated { found: 0, .. }), "{refusal:?}");
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .expect("counted");
    assert_eq!(tables, 1);
}

#[test]
fn memory_is_never_taken_for_a_file() {
    for path in [":memory:", ""] {
        let refusal = refusal(path, Options::default());
        assert!(
            matches!(refusal, OpenError::File(FileError::NoWriteAheadLog(..))),
            "{path:?}: {refusal:?}"
        );
    }
}

#[test]
fn a_lock_is_waited_for_and_then_named() {
    let sqlite = Sqlite::new();
    let holder = sqlite.client();
    holder.execute_batch("BEGIN EXCLUSIVE; CREATE TABLE held (x)").expect("locked");
    let refusal = refusal(sqlite.path(), impatient(&sqlite));
    assert!(matches!(refusal, OpenError::File(FileError::Locked { .. })), "{refusal:?}");
    drop(holder);
    drop(sqlite.store());
}

#[test]
fn a_newer_schema_is_refused() {
    let sqlite = Sqlite::new();
    drop(sqlite.store());
    sqlite
        .client()
        .execute_batch("UPDATE hapax_meta SET value = 1000 WHERE name = 'version'")
        .expect("written");
    let refusal = refusal(sqlite.path(), sqlite.options());
    assert!(matches!(refusal, OpenError::NewerSchema { found: 1000, .. }), "{refusal:?}");
    assert!(refusal.to_string().contains("upgrade this program"), "{refusal}");
}

#[test]
fn a_database_that_does_not_fit_is_not_half_made() {
    let sqlite = Sqlite::new();
    let small = Options { size_bytes_max: Some(4096), ..sqlite.options() };
    let refusal = refusal(sqlite.path(), small);
    assert!(matches!(refusal, OpenError::File(FileError::Full(..))), "{refusal:?}");
    let tables = "SELECT count(*) FROM sqlite_schema";
    assert_eq!(sqlite.client().query_row(tables, [], |row| row.get(0)), Ok(0));
    drop(sqlite.store());
}

#[test]
fn a_database_without_its_salt_is_damaged() {
    let sqlite = Sqlite::new();
    drop(sqlite.store());
    sqlite.client().execute_batch("DELETE FROM hapax_meta").expect("deleted");
    let refusal = refusal(sqlite.path(), sqlite.options());
    assert!(matches!(refusal, OpenError::File(FileError::Damaged(..))), "{refusal:?}");
}

#[test]
fn a_damaged_schema_is_refused() {
    let sqlite = Sqlite::new();
    drop(sqlite.store());
    let mut file = fs::read(sqlite.path()).expect("read");
    file[100..4096].fill(0xa5);
    fs::write(sqlite.path(), file).expect("written");
    let refusal = refusal(sqlite.path(), sqlite.options());
    assert!(matches!(refusal, OpenError::File(FileError::Damaged(..))), "{refusal:?}");
    assert!(refusal.to_string().contains("backup"), "{refusal}");
}

#[test]
fn whoever_opens_a_new_file_at_once_agrees_on_its_salt() {
    const OPENERS: usize = 8;
    let (sqlite, start) = (Sqlite::new(), Barrier::new(OPENERS));
    let salts: Vec<_> = thread::scope(|scope| {
        let open = || {
            start.wait();
            sqlite.store().salt()
        };
        let openers: Vec<_> = (0..OPENERS).map(|_| scope.spawn(open)).collect();
        openers.into_iter().map(|opener| opener.join().expect("it opens")).collect()
    });
    assert!(salts.iter().all(|salt| salt == &salts[0]));
    assert_eq!(sqlite.store().salt(), salts[0]);
}

#[test]
fn a_migration_that_was_killed_is_done_anew() {
    let (killed, copy) = (Sqlite::new(), Sqlite::new());
    let dying = killed.client();
    dying.execute_batch("PRAGMA journal_mode = WAL; PRAGMA cache_size = 1").expect("set");
    dying
        .execute_batch(
            "BEGIN IMMEDIATE; CREATE TABLE hapax_claims (half);
             CREATE TABLE hapax_meta (name, value); INSERT INTO hapax_meta VALUES ('version', 1);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO hapax_claims SELECT zeroblob(4000) FROM n",
        )
        .expect("half of a migration is in the log");
    for suffix in ["", "-wal"] {
        let file = |path: std::path::PathBuf| format!("{}{suffix}", path.display());
        let bytes = fs::copy(file(killed.path()), file(copy.path())).expect("copied");
        assert!(bytes > 0 || suffix.is_empty(), "the log holds what was not committed");
    }
    drop(copy.store());
}
