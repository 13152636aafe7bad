//! Cut wires, locks and crashes: what is answered, and that it recovers.

use std::time::Duration;

use hapax_core::{
    Store, StoreError,
    store::{Write, Written},
};
use hapax_postgres::Options;

use crate::{
    backend::Postgres,
    reference::{claim, complete, completion, operation},
};

const KILL_OTHERS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                           WHERE datname = current_database() AND pid <> pg_backend_pid()";
const KILL_WAITING: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                            WHERE datname = current_database() AND wait_event_type = 'Lock'";

fn claims(key: &str) -> Vec<Write> {
    vec![Write::Claim(claim(key, 1))]
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_lost_while_idle_come_back_by_themselves() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "before", b"").await;
    assert!(database.number(KILL_OTHERS).await > 0);
    for round in 0.. {
        match &store.commit(claims("after")).await[..] {
            [Ok(Written::Done { .. })] => break,
            [Err(StoreError::Unavailable(_) | StoreError::Unconfirmed(_))] if round < 10 => {}
            other => panic!("{other:?}"),
        }
    }
    let loaded = store.load(vec![operation("after").id()]).await;
    assert!(loaded[0].as_ref().unwrap().record.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wire_cut_while_a_batch_is_under_way_is_unconfirmed() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "first", b"").await;
    let mut operator = database.client().await;
    let blocking = operator.transaction().await.unwrap();
    blocking.batch_execute("LOCK TABLE hapax.operations").await.unwrap();
    let writer = store.clone();
    let waiting = tokio::spawn(async move { writer.commit(claims("cut")).await });
    while database.number(KILL_WAITING).await == 0 {
        tokio::task::yield_now().await;
    }
    let committed = waiting.await.unwrap();
    assert!(matches!(committed[..], [Err(StoreError::Unconfirmed(_))]), "{committed:?}");
    blocking.rollback().await.unwrap();
    assert!(matches!(store.commit(claims("cut")).await[..], [Ok(Written::Done { .. })]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_cannot_get_its_locks_is_unavailable_and_wrote_nothing() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "first", b"").await;
    let mut operator = database.client().await;
    let blocking = operator.transaction().await.unwrap();
    blocking.batch_execute("LOCK TABLE hapax.operations IN SHARE MODE").await.unwrap();
    let committed = store.commit(claims("blocked")).await;
    assert!(matches!(committed[..], [Err(StoreError::Unavailable(_))]), "{committed:?}");
    blocking.rollback().await.unwrap();
    let loaded = store.load(vec![operation("blocked").id()]).await;
    assert!(loaded[0].as_ref().unwrap().record.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_in_time_is_given_up() {
    let database = Postgres::empty().await;
    let answer_timeout = Duration::from_millis(300);
    let store = database.store_with(Options { answer_timeout, ..Options::default() }).await;
    complete(&store, "first", b"").await;
    let mut operator = database.client().await;
    let blocking = operator.transaction().await.unwrap();
    blocking.batch_execute("LOCK TABLE hapax.operations IN SHARE MODE").await.unwrap();
    let committed = store.commit(claims("silent")).await;
    assert!(matches!(committed[..], [Err(StoreError::Unconfirmed(_))]), "{committed:?}");
    blocking.rollback().await.unwrap();
    assert!(matches!(store.commit(claims("next")).await[..], [Ok(Written::Done { .. })]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_nobody_waits_for_is_written_all_the_same() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "first", b"").await;
    let mut operator = database.client().await;
    let blocking = operator.transaction().await.unwrap();
    blocking.batch_execute("LOCK TABLE hapax.operations IN SHARE MODE").await.unwrap();
    let writer = store.clone();
    let waiting = tokio::spawn(async move { writer.commit(claims("dropped")).await });
    let held_up = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while database.number(held_up).await == 0 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    blocking.rollback().await.unwrap();
    let id = operation("dropped").id();
    while store.load(vec![id]).await[0].as_ref().unwrap().record.is_none() {
        tokio::task::yield_now().await;
    }
    let batch = vec![Write::Settle(completion("dropped", 1, b"done"))];
    assert!(matches!(store.commit(batch).await[..], [Ok(Written::Done { .. })]));
}

#[tokio::test(flavor = "multi_thread")]
async fn durability_is_raised_where_the_database_turned_it_off() {
    let database = Postgres::empty().await;
    let text = format!("ALTER DATABASE {} SET synchronous_commit = off", database.name);
    database.client().await.batch_execute(&text).await.unwrap();
    let store = database.store().await;
    let text = "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                NEW.tenant := current_setting('synchronous_commit'); RETURN NEW; END $$; \
                CREATE TRIGGER note BEFORE INSERT ON hapax.operations \
                FOR EACH ROW EXECUTE FUNCTION note()";
    database.client().await.batch_execute(text).await.unwrap();
    assert!(matches!(store.commit(claims("durable")).await[..], [Ok(_)]));
    let row = database.client().await.query_one("SELECT tenant FROM hapax.operations", &[]).await;
    assert_eq!(row.unwrap().get::<_, &str>(0), "on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_during_a_commit_is_not_read_as_durable() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let text = "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                RAISE WARNING 'canceling wait for synchronous replication'; RETURN NEW; END $$; \
                CREATE TRIGGER warn BEFORE INSERT ON hapax.operations \
                FOR EACH ROW EXECUTE FUNCTION warn()";
    database.client().await.batch_execute(text).await.unwrap();
    let committed = store.commit(claims("local")).await;
    assert!(matches!(committed[..], [Err(StoreError::Unconfirmed(_))]), "{committed:?}");
}
