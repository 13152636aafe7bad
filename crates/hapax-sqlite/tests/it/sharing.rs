//! The file is shared with other processes, with a disk that fills up, and with decay.

use std::{fs, time::Duration};

use hapax_core::{
    Store as _, StoreError,
    store::{Write, Written},
};
use hapax_sqlite::{FileError, OpenError, Options, Store};

use crate::{
    backend::Sqlite,
    calls::{claim, complete, first_claim, load},
};

#[tokio::test]
async fn a_lock_held_too_long_is_unavailable_and_nothing_is_written() {
    let sqlite = Sqlite::new();
    let options = Options { busy: Duration::from_millis(20), ..sqlite.options() };
    let store = Store::open(sqlite.path(), options).expect("it opens");
    let holder = sqlite.client();
    holder.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let refused = claim(&store, "a").await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(matches!(load(&store, "a").await, Ok(None)), "readers do not wait for a lock");
    holder.execute_batch("ROLLBACK").expect("unlocked");
    assert!(matches!(claim(&store, "a").await, Ok(Written::Done { .. })));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_moved_away_is_neither_written_nor_made_anew() {
    let sqlite = Sqlite::new();
    let store = sqlite.store();
    claim(&store, "a").await.expect("written");
    let away = sqlite.path().with_file_name("away.db");
    fs::rename(sqlite.path(), &away).expect("moved");
    let (claimed, loaded) = (claim(&store, "b").await, load(&store, "a").await);
    assert!(matches!(claimed, Err(StoreError::Unavailable(_))), "{claimed:?}");
    assert!(matches!(loaded, Err(StoreError::Unavailable(_))), "{loaded:?}");
    assert!(!sqlite.path().exists());
    fs::rename(&away, sqlite.path()).expect("moved back");
    assert!(matches!(load(&store, "b").await, Ok(None)));
    assert!(matches!(claim(&store, "b").await, Ok(Written::Done { .. })));
}

#[tokio::test]
async fn a_batch_that_wins_nothing_writes_nothing() {
    let sqlite = Sqlite::new();
    let store = sqlite.store();
    claim(&store, "a").await.expect("written");
    let log = format!("{}-wal", sqlite.path().display());
    let before = fs::read(&log).expect("read");
    for _ in 0..10 {
        let batch = vec![Write::Claim(first_claim("a"))];
        let found = store.commit(batch).await.remove(0);
        assert!(matches!(found, Ok(Written::Refused { record: Some(_), .. })), "{found:?}");
    }
    assert_eq!(fs::read(&log).expect("read"), before);
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_what_was_answered_is_there() {
    let sqlite = Sqlite::new();
    let limited = Options { size_bytes_max: Some(1 << 20), ..sqlite.options() };
    let store = Store::open(sqlite.path(), limited).expect("it opens");
    let body = vec![b'x'; 100 << 10];
    let mut kept = Vec::new();
    let refused = loop {
        let key = format!("{}", kept.len());
        claim(&store, &key).await.expect("there is room for a claim");
        match complete(&store, &key, &body).await {
            Ok(settled) => assert!(matches!(settled, Written::Done { .. })),
            Err(error) => break error,
        }
        kept.push(key);
    };
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    assert!(!kept.is_empty());
    drop(store);

    let store = sqlite.store();
    for key in &kept {
        let record = load(&store, key).await.expect("readable").expect("there");
        assert!(record.outcome().is_some());
    }
    let refused = format!("{}", kept.len());
    let record = load(&store, &refused).await.expect("readable").expect("the claim is there");
    assert!(record.outcome().is_none(), "nothing of what was refused is there");
    assert!(matches!(complete(&store, &refused, &body).await, Ok(Written::Done { .. })));
}

#[tokio::test]
async fn damage_of_the_file_is_not_a_passing_failure() {
    let sqlite = Sqlite::new();
    let store = sqlite.store();
    for number in 0..100 {
        claim(&store, &format!("{number}")).await.expect("written");
        complete(&store, &format!("{number}"), &[b'x'; 512]).await.expect("written");
    }
    drop(store);
    let mut file = fs::read(sqlite.path()).expect("read");
    // All but the first page, which holds the schema.
    file[4096..].fill(0xa5);
    fs::write(sqlite.path(), file).expect("written");

    let opened = Store::open(sqlite.path(), sqlite.options());
    let refusal = opened.expect_err("the salt is gone too");
    assert!(matches!(refusal, OpenError::File(FileError::Damaged(..))), "{refusal:?}");
}

#[tokio::test]
async fn damage_that_comes_later_is_damage() {
    let sqlite = Sqlite::new();
    let store = sqlite.store();
    for number in 0..100 {
        claim(&store, &format!("{number}")).await.expect("written");
        complete(&store, &format!("{number}"), &[b'x'; 512]).await.expect("written");
    }
    drop(store);
    let page = "SELECT rootpage FROM sqlite_schema WHERE name = 'hapax_ends'";
    let page: u32 = sqlite.client().query_row(page, [], |row| row.get(0)).expect("there");
    let end = usize::try_from(page).expect("small") * 4096;
    let mut file = fs::read(sqlite.path()).expect("read");
    file[end - 4096..end].fill(0xa5);
    fs::write(sqlite.path(), file).expect("written");

    let store = sqlite.store();
    let loaded = load(&store, "1").await;
    assert!(matches!(loaded, Err(StoreError::Damaged(_))), "{loaded:?}");
    claim(&store, "new").await.expect("claims are elsewhere");
    let ended = complete(&store, "new", b"").await;
    assert!(matches!(ended, Err(StoreError::Damaged(_))), "{ended:?}");
}
