//! SQLite files, well and not.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{FileExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use tempfile::TempDir;

use super::{Visit, lines};
use crate::{hapax, text};

/// What depends on the machine the tests run on.
const OF_THE_MACHINE: [&str; 3] = ["file system", "sync", "room"];

struct File {
    directory: TempDir,
}

impl File {
    /// A file as `hapax migrate` makes it.
    fn new() -> Self {
        let file = Self { directory: tempfile::tempdir().unwrap() };
        let made = hapax(&["migrate", "--store", &file.store()]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        file
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("hapax.db")
    }

    fn store(&self) -> String {
        store(&self.path())
    }

    fn visit(&self) -> Visit {
        let visit = Visit::of(&["--store", &self.store()]);
        visit.check_words();
        visit
    }

    fn change(&self, sql: &str) {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }

    fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

fn store(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

#[test]
fn a_file_as_it_was_made_is_well_and_stays_as_it_is() {
    let file = File::new();
    let before = file.contents();
    let visit = file.visit();
    assert!(visit.troubles(&OF_THE_MACHINE).is_empty(), "{:#}", visit.report);
    assert_eq!(visit.found("journal mode"), "wal");
    assert!(visit.found("sync").contains("into a file of our own"));
    assert!(before == file.contents(), "something was changed, or left behind");
    let told = text(&lines(&["--store", &file.store()]).stdout);
    assert!(told.contains("ok") && told.contains("danger 0"), "{told}");
    let quiet = text(&lines(&["--quiet", "--store", &file.store()]).stdout);
    assert!(!quiet.contains("journal mode"), "{quiet}");
}

#[test]
fn whatever_is_wrong_with_a_file_is_told() {
    let open = File::new();
    fs::set_permissions(open.path(), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(open.visit().level("permissions"), "warning");

    let changed = File::new();
    changed.change("DROP INDEX hapax_ranges_due; PRAGMA journal_mode = DELETE;");
    let visit = changed.visit();
    assert_eq!(visit.found("tables"), "hapax_ranges_due is missing");
    assert_eq!((visit.level("tables"), visit.level("journal mode")), ("danger", "danger"));
    assert_eq!(visit.code, 2);

    let damaged = File::new();
    damaged.change("PRAGMA wal_checkpoint(TRUNCATE);");
    let opened = fs::OpenOptions::new().write(true).open(damaged.path()).unwrap();
    let half = opened.metadata().unwrap().len() / 2;
    opened.write_all_at(&[0xa5; 8192], half / 4096 * 4096).unwrap();
    assert_eq!(damaged.visit().level("integrity"), "danger");

    let foreign = File { directory: tempfile::tempdir().unwrap() };
    fs::write(foreign.path(), "this is no database, only a text of some length").unwrap();
    assert_eq!(foreign.visit().level("file"), "danger");
}

#[test]
fn a_file_that_is_not_there_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing.db");
    let visit = Visit::of(&["--store", &store(&path)]);
    assert_eq!((visit.code, visit.level("file")), (1, "warning"));
    assert!(!path.exists());
    let itself = Visit::of(&["--store", &store(directory.path())]);
    assert_eq!((itself.code, itself.level("file")), (2, "danger"));
}

#[test]
fn a_file_in_memory_is_a_danger() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else { return };
    let file = File { directory };
    let made = hapax(&["migrate", "--store", &file.store()]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let visit = file.visit();
    assert_eq!((visit.level("file system"), visit.found("file system")), ("danger", "tmpfs"));
}

#[test]
fn whoever_has_the_file_open_is_named() {
    let file = File::new();
    let held = Connection::open(file.path()).unwrap();
    held.execute_batch("BEGIN; SELECT count(*) FROM hapax_meta;").unwrap();
    let visit = file.visit();
    let pid = std::process::id();
    assert!(
        visit.found("open files").contains(&format!("pid {pid}")),
        "{}",
        visit.found("open files")
    );
}
