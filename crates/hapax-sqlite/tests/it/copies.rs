//! Whether a file is taken for the one it was, whatever became of it and of what is written beside it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use hapax_core::{
    Faults, Injected, Store as _, StoreError,
    incarnation::{
        Finding, IncarnationChange, IncarnationMark, LossCause, compare, first_mark, noted,
    },
};
use hapax_sqlite::{Options, Store, mark_copy};
use rusqlite::Connection;
use tempfile::TempDir;

/// A folder, with the place of a store in it that may be used already.
struct Folder(TempDir);

impl Folder {
    fn empty() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    async fn used() -> Self {
        let folder = Self::empty();
        folder.use_store().await;
        folder
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("hapax.db")
    }

    fn position(&self) -> PathBuf {
        self.0.path().join("hapax.db-position")
    }

    fn elsewhere(&self) -> PathBuf {
        fs::create_dir_all(self.0.path().join("elsewhere")).expect("made");
        self.0.path().join("elsewhere/hapax.db")
    }

    async fn use_store(&self) {
        go_on(&open(&self.path())).await.expect("kept");
    }

    /// A copy made by SQLite's own means, with the journal that a store wants.
    fn copy(&self) -> PathBuf {
        let to = self.elsewhere();
        let client = Connection::open(self.path()).expect("the file opens");
        client.execute("VACUUM INTO ?1", [to.to_str().expect("text")]).expect("copied");
        let copy = Connection::open(&to).expect("the copy opens");
        copy.pragma_update(None, "journal_mode", "wal").expect("switched");
        to
    }

    fn marked_copy(&self) -> PathBuf {
        let to = self.copy();
        mark_copy(&mut Connection::open(&to).expect("the copy opens")).expect("marked");
        to
    }

    /// Puts what is elsewhere in the place of the store, as a restore does.
    fn put_back(&self) -> PathBuf {
        let _ = fs::remove_file(self.path());
        fs::rename(self.elsewhere(), self.path()).expect("moved");
        self.path()
    }
}

fn open(path: &Path) -> Store {
    Store::open(path, Options::default()).expect("the store opens")
}

/// What a process does three times: it looks, and gives a sign of life.
async fn go_on(store: &Store) -> Result<(), StoreError> {
    for _ in 0..3 {
        let reading = store.incarnation().await?;
        let mark = match reading.mark.clone() {
            None => first_mark(&reading),
            Some(mark) => IncarnationMark { position: mark.position + 1, ..mark },
        };
        keep(store, reading.mark.map(|mark| mark.position), mark).await?;
    }
    Ok(())
}

async fn keep(
    store: &Store,
    expected: Option<i64>,
    mark: IncarnationMark,
) -> Result<bool, StoreError> {
    let (present, gone) = (None, Vec::new());
    store.keep_incarnation(IncarnationChange { expected, mark, present, gone }).await
}

async fn finding(path: &Path) -> Finding {
    compare(&open(path).incarnation().await.expect("told"), None)
}

const LOST: Finding = Finding::Changed(LossCause::Restore);

#[tokio::test]
async fn a_file_that_is_where_it_was_with_its_position_is_the_same() {
    let folder = Folder::empty();
    assert_eq!(finding(&folder.path()).await, Finding::New);
    folder.use_store().await;
    assert_eq!(finding(&folder.path()).await, Finding::Same);
    let to = folder.elsewhere();
    fs::rename(folder.path(), &to).expect("moved");
    fs::rename(folder.position(), to.with_file_name("hapax.db-position")).expect("moved");
    assert_eq!(finding(&to).await, Finding::Same, "both were moved");
    assert_eq!(finding(&folder.path()).await, Finding::New, "nothing is left of it");
    fs::remove_file(folder.path()).expect("removed");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&to, folder.path()).expect("linked");
        assert_eq!(finding(&folder.path()).await, Finding::Same, "by a link");
    }
}

#[tokio::test]
async fn a_file_without_its_position_may_have_forgotten() {
    let folder = Folder::used().await;
    assert_eq!(finding(&folder.copy()).await, LOST, "made by SQLite");

    let folder = Folder::used().await;
    let running = open(&folder.path());
    let to = folder.elsewhere();
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", folder.path().display());
        fs::copy(from, format!("{}{suffix}", to.display())).expect("copied");
    }
    assert_eq!(finding(&to).await, LOST, "copied with its log");
    drop(running);

    fs::remove_file(folder.position()).expect("removed");
    assert_eq!(finding(&folder.path()).await, LOST, "the position alone was lost");
    let other = Folder::used().await;
    fs::copy(other.position(), folder.position()).expect("copied");
    assert_eq!(finding(&folder.path()).await, LOST, "the position is another's");
    fs::write(folder.position(), "").expect("emptied");
    assert_eq!(finding(&folder.path()).await, LOST, "the position is gone");
    fs::remove_file(other.path()).expect("removed");
    assert_eq!(finding(&other.path()).await, LOST, "the file alone was lost");
}

#[tokio::test]
async fn a_copy_that_says_so_may_have_forgotten_wherever_it_is() {
    let folder = Folder::used().await;
    assert_eq!(finding(&folder.marked_copy()).await, LOST);
    let position = fs::read_to_string(folder.position()).expect("read");
    assert_eq!(finding(&folder.put_back()).await, LOST, "beside the position of its source");
    assert_eq!(fs::read_to_string(folder.position()).expect("read"), position);

    let unused = Folder::empty();
    drop(open(&unused.path()));
    assert_eq!(finding(&unused.marked_copy()).await, LOST, "before anybody used its source");
}

#[tokio::test]
async fn a_copy_says_which_file_it_was_until_it_goes_on_as_another() {
    let folder = Folder::used().await;
    let was = open(&folder.path()).incarnation().await.expect("told").incarnation;
    let copy = open(&folder.marked_copy());
    let reading = copy.incarnation().await.expect("told");
    assert_ne!(reading.incarnation, was);
    let mark = noted(&reading, None, LossCause::Restore);
    let expected = reading.mark.map(|mark| mark.position);
    assert!(keep(&copy, expected, mark.clone()).await.expect("kept"));
    let reading = copy.incarnation().await.expect("told");
    assert_eq!(compare(&reading, None), Finding::Same);
    assert_eq!(reading.mark, Some(mark));
    let quarantine = reading.mark.and_then(|mark| mark.quarantine).expect("quarantined");
    assert_eq!(quarantine.before, was);
}

#[tokio::test]
async fn wherever_a_process_dies_a_file_that_lost_nothing_is_not_taken_for_a_copy() {
    for place in 0.. {
        let (folder, passed) = (Folder::empty(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&passed);
        let faults = Faults::new(move |name| {
            let is_ours = ["sqlite.keep_past.", "sqlite.remember."]
                .iter()
                .any(|prefix| name.starts_with(prefix));
            let is_here = is_ours && count.fetch_add(1, Relaxed) == place;
            if is_here { Err(Injected { place: name }) } else { Ok(()) }
        });
        let store = Store::open(folder.path(), Options { faults, ..Options::default() });
        let died = go_on(&store.expect("the store opens")).await.is_err();
        let found = finding(&folder.path()).await;
        assert!(matches!(found, Finding::New | Finding::Same), "place {place}: {found:?}");
        folder.use_store().await;
        assert_eq!(finding(&folder.path()).await, Finding::Same, "place {place}");
        if !died {
            assert_eq!(place, 3 * 8, "each place was passed three times");
            break;
        }
    }
}

#[tokio::test]
async fn wherever_a_process_dies_a_lost_file_stays_lost() {
    for place in ["sqlite.keep_past.before_commit", "sqlite.remember.before_begin"] {
        let folder = Folder::used().await;
        fs::remove_file(folder.path()).expect("removed");
        let fail = |place| Err(Injected { place });
        let faults = Faults::new(move |name| if name == place { fail(name) } else { Ok(()) });
        let store = Store::open(folder.path(), Options { faults, ..Options::default() });
        let store = store.expect("the store opens");
        let reading = store.incarnation().await.expect("told");
        let mark = noted(&reading, None, LossCause::Restore);
        assert!(keep(&store, None, mark).await.is_err());
        drop(store);
        assert_eq!(finding(&folder.path()).await, LOST, "{place}");
    }
}
