//! The `sqlx` door, driven by the engine: a pool is left as it was, whatever happens.

use std::{path::Path, sync::Arc, time::Duration};

use hapax_core::{
    AttemptAnswer, Database as _, Event, Faults, Fingerprint, Outcome, Owner, StoreError,
    transaction::{Entered, Entrance, TransactionAnswer},
};
use hapax_engine::{
    Fate, InTransactionError, TransactionOptions, Transactional, Tx, transactional::WorkError,
};
use hapax_sqlite::{
    Clock,
    sqlx::{Database, NotMigrated, Transaction, emit, migrate},
    transaction,
};
use sqlx::{
    Connection as _, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use super::shop::{self, answer, failing_at, payments, records};
use crate::{
    backend::Sqlite,
    calls::{claim, load, operation},
};

type Work = Result<AttemptAnswer, WorkError>;

/// A pool of a program of its own.
async fn open(sqlite: &Sqlite, connections: u32) -> SqlitePool {
    connect(&sqlite.path(), connections).await
}

async fn connect(path: &Path, connections: u32) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_millis(1234));
    let pool = SqlitePoolOptions::new().max_connections(connections).connect_with(options).await;
    let pool = pool.expect("connected");
    let tables =
        "CREATE TABLE IF NOT EXISTS payments (number INTEGER PRIMARY KEY, key TEXT NOT NULL)";
    sqlx::raw_sql(tables).execute(&pool).await.expect("created");
    migrate(&pool).await.expect("migrated");
    pool
}

fn door(sqlite: &Sqlite, pool: &SqlitePool) -> Transactional<Database> {
    let database = Database::new(pool.clone()).with_clock(Clock::new(sqlite.now()));
    Transactional::new(database, TransactionOptions::default())
}

fn fingerprint() -> Fingerprint {
    Fingerprint::from_bytes([7; Fingerprint::BYTES])
}

async fn pay(
    door: &Transactional<Database>,
    key: &'static str,
    status: u16,
) -> Result<hapax_engine::Answered, InTransactionError> {
    let work = move |tx| paying(tx, key, status);
    door.run(operation(key), fingerprint(), *door.options(), work).await
}

async fn paying(mut tx: Tx<Transaction>, key: &'static str, status: u16) -> Work {
    insert(&mut tx, key).await?;
    Ok(answer(status))
}

async fn insert(tx: &mut Transaction, key: &str) -> sqlx::Result<()> {
    let sql = "INSERT INTO payments (key) VALUES (?1)";
    sqlx::query(sql).bind(key).execute(&mut **tx).await.map(|_| ())
}

/// Pays keys in two rows each, as the process that is killed.
#[cfg(target_os = "linux")]
pub(crate) fn payer(path: &Path, faults: Faults) -> Box<dyn FnMut(&str)> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let pool = runtime.block_on(connect(path, 2));
    let clock = Clock::new(Sqlite::new().now());
    let database = Database::new(pool).with_clock(clock).with_faults(faults.clone());
    let door = Transactional::new(database, TransactionOptions::default());
    Box::new(move |key| {
        let (owned, faults) = (key.to_owned(), faults.clone());
        let work = move |mut tx: Tx<Transaction>| {
            let (key, faults) = (owned.clone(), faults.clone());
            async move {
                insert(&mut tx, &key).await?;
                faults.at(super::killed::BETWEEN_WRITES)?;
                insert(&mut tx, &key).await?;
                Work::Ok(answer(201))
            }
        };
        let run = door.run(operation(key), fingerprint(), *door.options(), work);
        assert_eq!(runtime.block_on(run).expect("it is answered").outcome.status(), 201);
    })
}

/// Every connection of the pool works, outside any transaction, as patient as it was.
async fn is_as_it_was(pool: &SqlitePool) {
    let mut connections = Vec::new();
    for _ in 0..pool.options().get_max_connections() {
        connections.push(pool.acquire().await.expect("free"));
    }
    for connection in &mut connections {
        assert!(!connection.is_in_transaction());
        let begun = connection.begin_with("BEGIN IMMEDIATE").await.expect("nobody holds the lock");
        begun.rollback().await.expect("rolled back");
        let busy: i64 = sqlx::query_scalar("PRAGMA busy_timeout")
            .fetch_one(&mut **connection)
            .await
            .expect("read");
        assert_eq!(busy, 1234);
    }
}

#[tokio::test]
async fn an_answer_is_committed_with_its_writes_kept_without_them_or_rolled_back() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 2).await;
    let (door, shop) = (door(&sqlite, &pool), shop::open(&sqlite));
    let stored = |fate| matches!(fate, Fate::Stored { .. });
    assert!(stored(pay(&door, "paid", 201).await.expect("it runs").fate));
    assert!(stored(pay(&door, "poor", 402).await.expect("it runs").fate));
    assert_eq!(pay(&door, "late", 503).await.expect("it runs").fate, Fate::RolledBack);
    assert_eq!((payments(&shop), records(&shop, "failed")), (1, 1));
    for (key, status) in [("paid", 201), ("poor", 402)] {
        let again = pay(&door, key, 500).await.expect("it is replayed");
        assert_eq!(again.outcome, Outcome::bare(status));
        assert!(matches!(again.fate, Fate::Replayed { .. }), "{again:?}");
    }
    pay(&door, "late", 201).await.expect("it runs");
    assert_eq!(payments(&shop), 2);
    is_as_it_was(&pool).await;
}

#[tokio::test]
async fn work_that_fails_or_panics_leaves_nothing_behind() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 1).await;
    let (door, shop) = (door(&sqlite, &pool), shop::open(&sqlite));
    let failing = |mut tx: Tx<Transaction>| async move {
        insert(&mut tx, "a").await?;
        Work::Err("the card reader is on fire".into())
    };
    let failed = door.run(operation("a"), fingerprint(), *door.options(), failing).await;
    assert!(matches!(failed, Err(InTransactionError::Failed(_))), "{failed:?}");
    let panicking = |mut tx: Tx<Transaction>| async move {
        insert(&mut tx, "a").await?;
        panic!("this work panics");
        #[expect(unreachable_code, reason = "it says what the work would answer")]
        Work::Ok(answer(201))
    };
    let panicked = door.run(operation("a"), fingerprint(), *door.options(), panicking).await;
    assert!(matches!(panicked, Err(InTransactionError::Panicked)), "{panicked:?}");
    assert_eq!(payments(&shop), 0);
    is_as_it_was(&pool).await;
    pay(&door, "a", 201).await.expect("the key is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_callers_with_one_key_make_one_payment_and_others_are_not_held_up() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 4).await;
    let (door, shop) = (Arc::new(door(&sqlite, &pool)), shop::open(&sqlite));
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..32 {
        let (door, key) = (Arc::clone(&door), ["one", "two"][number % 2]);
        calls.spawn(async move { pay(&door, key, 201).await.expect("it is answered").fate });
    }
    let fates = calls.join_all().await;
    let stored = fates.iter().filter(|fate| matches!(fate, Fate::Stored { .. })).count();
    assert_eq!((stored, payments(&shop), records(&shop, "completed")), (2, 2, 2));
    is_as_it_was(&pool).await;
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_rolled_back_and_its_connection_closed() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 1).await;
    let database = Database::new(pool.clone());
    let entrance = Entrance {
        operation: operation("a"),
        fingerprint: fingerprint(),
        owner: Owner(1),
        policy: hapax_core::Policy::default(),
        wait: Duration::from_secs(1),
    };
    let Ok(Entered::Execute(granted)) = database.begin(&entrance).await else { panic!("granted") };
    let mut transaction = granted.transaction;
    insert(&mut transaction, "a").await.expect("written");
    drop(transaction);
    is_as_it_was(&pool).await;
    assert_eq!(payments(&shop::open(&sqlite)), 0);
}

#[tokio::test]
async fn savepoints_of_the_work_are_its_own() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 1).await;
    let (door, shop) = (door(&sqlite, &pool), shop::open(&sqlite));
    let work = |mut tx: Tx<Transaction>| async move {
        insert(&mut tx, "kept").await?;
        let mut inner = tx.begin().await?;
        sqlx::query("DELETE FROM payments").execute(&mut *inner).await?;
        inner.rollback().await?;
        let inner = tx.begin().await?;
        drop(inner);
        Work::Ok(answer(201))
    };
    door.run(operation("a"), fingerprint(), *door.options(), work).await.expect("it runs");
    assert_eq!(payments(&shop), 1);
    is_as_it_was(&pool).await;
}

#[tokio::test]
async fn a_transaction_ended_by_hand_is_an_alarm_and_is_not_run_again() {
    for by_hand in ["COMMIT", "ROLLBACK"] {
        let sqlite = Sqlite::new();
        let pool = open(&sqlite, 1).await;
        let (door, shop) = (door(&sqlite, &pool), shop::open(&sqlite));
        let work = move |mut tx: Tx<Transaction>| async move {
            sqlx::raw_sql(by_hand).execute(&mut **tx).await?;
            Work::Ok(answer(201))
        };
        let alarm = door.run(operation("a"), fingerprint(), *door.options(), work).await;
        assert!(
            matches!(alarm, Err(InTransactionError::Store(StoreError::Damaged(_)))),
            "{alarm:?}"
        );
        assert_eq!(records(&shop, "completed"), 0);
        is_as_it_was(&pool).await;
    }
}

#[tokio::test]
async fn a_lock_held_elsewhere_is_busy_but_replays_do_not_wait_for_it() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 2).await;
    let door = door(&sqlite, &pool);
    pay(&door, "done", 201).await.expect("it runs");
    let holder = sqlite.client();
    holder.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let options = TransactionOptions { wait: Duration::from_millis(20), ..*door.options() };
    let work = |tx| paying(tx, "new", 201);
    let refused = door.run(operation("new"), fingerprint(), options, work).await;
    assert!(
        matches!(refused, Err(InTransactionError::Refused(TransactionAnswer::Busy { .. }))),
        "{refused:?}"
    );
    let replayed = pay(&door, "done", 201).await.expect("it is replayed");
    assert!(matches!(replayed.fate, Fate::Replayed { .. }));
    holder.execute_batch("ROLLBACK").expect("unlocked");
    pay(&door, "new", 201).await.expect("it runs");
    is_as_it_was(&pool).await;
}

#[tokio::test]
async fn records_are_those_of_the_store_in_the_same_file() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 1).await;
    let (door, store) = (door(&sqlite, &pool), sqlite.store());
    claim(&store, "leased").await.expect("written");
    let refused = pay(&door, "leased", 201).await;
    assert!(
        matches!(refused, Err(InTransactionError::Refused(TransactionAnswer::Busy { .. }))),
        "{refused:?}"
    );
    let uuid = "0191e3a4-7c1d-7e2f-8a3b-0123456789ab";
    for status in [201, 500] {
        pay(&door, uuid, status).await.expect("it is answered");
    }
    let record = load(&store, uuid).await.expect("readable").expect("there");
    assert_eq!(record.outcome().map(Outcome::status), Some(201));
    let other = Fingerprint::from_bytes([8; Fingerprint::BYTES]);
    let refused = door.run(operation(uuid), other, *door.options(), |tx| paying(tx, uuid, 201));
    let refused = refused.await;
    assert!(
        matches!(refused, Err(InTransactionError::Refused(TransactionAnswer::Mismatch(_)))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_fault_before_the_commit_leaves_nothing_and_one_after_it_is_seen_through() {
    for place in transaction::PLACES {
        let sqlite = Sqlite::new();
        let pool = open(&sqlite, 1).await;
        let shop = shop::open(&sqlite);
        let with = |faults: Faults| {
            let database = Database::new(pool.clone()).with_faults(faults);
            Transactional::new(database, TransactionOptions::default())
        };
        let answered = pay(&with(failing_at(place)), "a", 201).await;
        if place.ends_with("after_commit") {
            assert!(matches!(answered.expect("it committed").fate, Fate::Stored { .. }));
        } else {
            let failed = answered.expect_err("it failed");
            let nothing = matches!(failed, InTransactionError::Store(StoreError::Unavailable(_)));
            assert!(nothing && payments(&shop) == 0, "{place}: {failed:?}");
        }
        pay(&with(Faults::default()), "a", 201).await.expect("it is answered");
        assert_eq!((payments(&shop), records(&shop, "completed")), (1, 1), "{place}");
        is_as_it_was(&pool).await;
    }
}

#[tokio::test]
async fn a_database_without_the_tables_says_what_to_do() {
    let sqlite = Sqlite::new();
    let options = SqliteConnectOptions::new().filename(sqlite.path()).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.expect("connected");
    let refused = pay(&door(&sqlite, &pool), "a", 201).await;
    let Err(InTransactionError::Store(StoreError::Unavailable(cause))) = refused else {
        panic!("{refused:?}")
    };
    assert!(cause.downcast_ref::<NotMigrated>().is_some(), "{cause}");
}

#[tokio::test]
async fn both_drivers_make_the_same_tables_once() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 1).await;
    let salt = migrate(&pool).await.expect("nothing to do");
    assert!(hapax_sqlite::migrate(&mut sqlite.client()).expect("nothing to do") == salt);
    assert!(Database::new(pool).salt().await.expect("read") == salt);
}

#[tokio::test]
async fn events_are_published_only_with_what_they_tell_of() {
    let sqlite = Sqlite::new();
    let pool = open(&sqlite, 1).await;
    let door = door(&sqlite, &pool);
    for (key, status) in [("a", 201), ("b", 402), ("c", 500), ("d", 201)] {
        let work = move |mut tx: Tx<Transaction>| async move {
            emit(&mut tx, &Event::new("payment.begun", key, "{}")?).await?;
            tx.emit(Event::new("payment.completed", key, "{}")?);
            Work::Ok(answer(status))
        };
        door.run(operation(key), fingerprint(), *door.options(), work).await.expect("it runs");
    }
    let keys = "SELECT group_concat(key) FROM (SELECT key FROM hapax_outbox ORDER BY position)
                WHERE key IN (SELECT key FROM hapax_outbox WHERE topic = 'payment.completed')";
    let keys: String = sqlx::query_scalar(keys).fetch_one(&pool).await.expect("read");
    assert_eq!(keys, "a,a,d,d");
}
