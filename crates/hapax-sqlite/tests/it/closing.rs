//! Handles are dropped, threads panic: nothing hangs and nothing that was taken on is lost.

use std::{
    path::PathBuf,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Waker},
};

use hapax_core::{
    Store as _, StoreError,
    store::{Write, Written},
};
use hapax_sqlite::{Clock, Options, Store};

use crate::{
    backend::Sqlite,
    calls::{claim, first_claim, load},
};

#[test]
fn dropping_the_last_handle_finishes_what_is_queued() {
    const QUEUED: u32 = 500;
    let (sqlite, context) = (Sqlite::new(), &mut Context::from_waker(Waker::noop()));
    let store = sqlite.store();
    for number in 0..QUEUED {
        let batch = vec![Write::Claim(first_claim(&format!("{number}")))];
        // Polled once it is queued; nobody waits for its answer.
        let _ = pin!(store.commit(batch)).poll(context);
    }
    drop(store);
    let count = "SELECT count(*) FROM hapax_claims";
    assert_eq!(sqlite.client().query_row(count, [], |row| row.get(0)), Ok(QUEUED));
}

#[tokio::test]
async fn a_closed_store_leaves_one_file() {
    let sqlite = Sqlite::new();
    let store = sqlite.store();
    claim(&store, "a").await.expect("written");
    let log = PathBuf::from(format!("{}-wal", sqlite.path().display()));
    assert!(log.exists());
    drop(store);
    assert!(!log.exists());
}

#[tokio::test]
async fn a_panic_while_writing_is_unavailable_and_the_next_write_succeeds() {
    let (sqlite, panics) = (Sqlite::new(), AtomicBool::new(true));
    let now = sqlite.now();
    let clock = Clock::new(move || {
        assert!(!panics.swap(false, Ordering::SeqCst), "this clock fails once");
        now()
    });
    let options = Options { clock, ..Options::default() };
    let store = Store::open(sqlite.path(), options).expect("it opens");
    let first = claim(&store, "a").await;
    assert!(matches!(first, Err(StoreError::Unavailable(_))), "{first:?}");
    let second = claim(&store, "a").await;
    assert!(matches!(second, Ok(Written::Done { .. })), "{second:?}");
}

#[tokio::test]
async fn a_panic_while_reading_is_unavailable_and_the_next_read_succeeds() {
    let (sqlite, panics) = (Sqlite::new(), AtomicBool::new(true));
    let now = sqlite.now();
    let clock = Clock::new(move || {
        assert!(!panics.swap(false, Ordering::SeqCst), "this clock fails once");
        now()
    });
    let options = Options { clock, readers: 1, ..Options::default() };
    let store = Store::open(sqlite.path(), options).expect("it opens");
    let first = load(&store, "a").await;
    assert!(matches!(first, Err(StoreError::Unavailable(_))), "{first:?}");
    let second = load(&store, "a").await;
    assert!(matches!(second, Ok(None)), "{second:?}");
}
