//! What cannot be opened is refused with what to do about it.

use std::{
    fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Barrier, thread, time::Duration,
};

use hapax_client::journal::{
    EntryFilter, FileError, Journal, JournalError, JournalOptions, OpenError,
};

use super::bench::{Bench, granted, wish};

fn refusal(path: impl AsRef<Path>, bench: &Bench) -> OpenError {
    let options = JournalOptions { busy: Duration::from_millis(20), ..bench.options() };
    Journal::open(path.as_ref(), options).expect_err("it is refused")
}

#[test]
fn a_missing_directory_is_named() {
    let bench = Bench::new();
    let refusal = refusal(bench.path().with_file_name("missing").join("client.db"), &bench);
    assert!(matches!(refusal, OpenError::File(FileError::MissingDirectory(..))), "{refusal:?}");
    assert!(refusal.to_string().contains("create it"), "{refusal}");
}

#[test]
fn what_is_no_file_that_can_be_written_is_refused() {
    let bench = Bench::new();
    let directory = bench.path().with_file_name("directory");
    fs::create_dir(&directory).expect("made");
    let mut paths = vec![directory, "".into(), ":memory:".into()];
    if cfg!(target_os = "linux") {
        // Not even root may write these.
        paths.extend(["/proc/version".into(), "/proc/client.db".into(), "/proc".into()]);
    }
    for path in paths {
        let refusal = refusal(&path, &bench);
        assert!(
            matches!(refusal, OpenError::File(FileError::ReadOnly(..))),
            "{path:?}: {refusal:?}"
        );
        assert!(refusal.to_string().contains("write access"), "{refusal}");
    }
    assert!(!Path::new(":memory:").exists());
}

#[test]
fn a_file_that_is_something_else_is_left_as_it_is() {
    let bench = Bench::new();
    let text = "not a database ".repeat(1000);
    fs::write(bench.path(), &text).expect("written");
    let first = refusal(bench.path(), &bench);
    assert!(matches!(first, OpenError::NotAJournal { source: Some(_), .. }), "{first:?}");
    assert_eq!(fs::read_to_string(bench.path()).expect("read"), text);

    fs::remove_file(bench.path()).expect("removed");
    bench.client().execute_batch("CREATE TABLE theirs (x)").expect("made");
    let before = fs::read(bench.path()).expect("read");
    let second = refusal(bench.path(), &bench);
    assert!(matches!(second, OpenError::NotAJournal { source: None, .. }), "{second:?}");
    assert!(second.to_string().contains("move the file away"), "{second}");
    assert_eq!(fs::read(bench.path()).expect("read"), before);
}

#[test]
fn a_newer_journal_is_left_to_newer_programs() {
    let bench = Bench::new();
    drop(bench.journal());
    bench.client().execute_batch("PRAGMA user_version = 7").expect("set");
    let refusal = refusal(bench.path(), &bench);
    assert!(matches!(refusal, OpenError::NewerVersion { found: 7, .. }), "{refusal:?}");
    assert!(refusal.to_string().contains("upgrade this program"), "{refusal}");
}

#[test]
fn a_damaged_file_is_refused() {
    let bench = Bench::new();
    drop(bench.journal());
    let mut file = fs::read(bench.path()).expect("read");
    file[100..4096].fill(0xa5);
    fs::write(bench.path(), file).expect("written");
    let refusal = refusal(bench.path(), &bench);
    assert!(matches!(refusal, OpenError::File(FileError::Damaged(..))), "{refusal:?}");
    assert!(refusal.to_string().contains("backup"), "{refusal}");
}

#[test]
fn a_lock_is_waited_for_and_then_named() {
    let bench = Bench::new();
    let holder = bench.client();
    holder.execute_batch("BEGIN EXCLUSIVE; CREATE TABLE held (x)").expect("locked");
    let refusal = refusal(bench.path(), &bench);
    assert!(matches!(refusal, OpenError::File(FileError::Locked { .. })), "{refusal:?}");
    drop(holder);
    drop(bench.journal());
}

#[test]
fn options_out_of_bounds_are_named() {
    let bench = Bench::new();
    let wrong: [(&str, JournalOptions); 5] = [
        ("lease", JournalOptions { lease: Duration::ZERO, ..bench.options() }),
        ("retention", JournalOptions { retention: Duration::MAX, ..bench.options() }),
        ("busy", JournalOptions { busy: Duration::MAX, ..bench.options() }),
        ("request_bytes_max", JournalOptions { request_bytes_max: 1 << 30, ..bench.options() }),
        ("answer_bytes_max", JournalOptions { answer_bytes_max: 1 << 30, ..bench.options() }),
    ];
    for (option, options) in wrong {
        let refusal = Journal::open(bench.path(), options).expect_err("it is refused");
        assert!(matches!(refusal, OpenError::Options(_)), "{refusal:?}");
        assert!(refusal.to_string().contains(option), "{refusal}");
    }
    assert!(!bench.path().exists());
}

#[test]
fn the_file_is_its_owners_alone() {
    let bench = Bench::new();
    let _journal = bench.journal();
    for file in ["client.db", "client.db-wal", "client.db-shm"] {
        let mode = fs::metadata(bench.path().with_file_name(file)).expect("there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn whoever_makes_a_journal_at_once_shares_it() {
    const OPENERS: usize = 8;
    let (bench, start) = (Bench::new(), Barrier::new(OPENERS));
    let patient = || JournalOptions { busy: Duration::from_secs(30), ..bench.options() };
    thread::scope(|scope| {
        for _ in 0..OPENERS {
            scope.spawn(|| {
                start.wait();
                drop(Journal::open(bench.path(), patient()).expect("it opens"));
            });
        }
    });
}

#[tokio::test]
async fn a_journal_that_is_gone_takes_nothing_more() {
    for replaced in [false, true] {
        let bench = Bench::new();
        let journal = bench.journal();
        granted(&journal, wish("charge", "k-1")).await;
        let away = bench.path().with_file_name("moved.db");
        fs::rename(bench.path(), &away).expect("moved");
        if replaced {
            fs::write(bench.path(), "").expect("written");
        }
        let error = journal.begin(wish("refund", "k-2")).await.expect_err("it is refused");
        assert!(matches!(error, JournalError::Unavailable(_)), "{error:?}");
        fs::rename(&away, bench.path()).expect("moved back");
        granted(&journal, wish("refund", "k-2")).await;
        assert_eq!(journal.list(EntryFilter::default()).await.expect("read").len(), 2);
    }
}

#[tokio::test]
async fn a_lock_that_is_not_given_up_leaves_nothing_written() {
    let bench = Bench::new();
    let journal = Journal::open(
        bench.path(),
        JournalOptions { busy: Duration::from_millis(20), ..bench.options() },
    )
    .expect("it opens");
    let holder = bench.client();
    holder.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let error = journal.begin(wish("charge", "k-1")).await.expect_err("it is refused");
    assert!(matches!(error, JournalError::Unavailable(_)), "{error:?}");
    holder.execute_batch("ROLLBACK").expect("unlocked");
    granted(&journal, wish("charge", "k-1")).await;
}
