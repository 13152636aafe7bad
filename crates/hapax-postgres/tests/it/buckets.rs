//! Outcome tables come before they are needed and go when their time is long past.

use std::time::Duration;

use hapax_core::{
    StateTag, Store,
    store::{Claim, Over, Write, Written},
};
use hapax_verify::conformance::Backend;

use crate::{
    backend::Postgres,
    reference::{RETENTION, claim, complete, completion, operation},
};

const ATTACHED: &str =
    "SELECT count(*) FROM pg_inherits WHERE inhparent = 'hapax.responses'::regclass";
const TABLES: &str = "SELECT count(*) FROM pg_class WHERE relnamespace = 'hapax'::regnamespace \
                      AND relkind = 'r' AND relname LIKE 'responses_%'";

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settle_makes_the_table_it_needs() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let before = database.number(ATTACHED).await;
    for days in [40, 300] {
        let (key, retention) = (format!("{days} days"), days * RETENTION);
        let claims = vec![Write::Claim(Claim { retention, ..claim(&key, 1) })];
        store.commit(claims).await;
        let settles = vec![Write::Settle(completion(&key, 1, b"kept long"))];
        let settled = store.commit(settles).await;
        assert!(settled[0].is_ok(), "{settled:?}");
        let loaded = store.load(vec![operation(&key).id()]).await.remove(0).unwrap();
        assert_eq!(loaded.record.unwrap().tag(), StateTag::Completed);
    }
    assert_eq!(database.number(ATTACHED).await, before + 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn settles_at_the_same_time_share_the_table_they_need() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    database.step_clock(micros(30 * RETENTION)).await;
    let settling = (0..16).map(|at| {
        let store = store.clone();
        tokio::spawn(async move { complete(&store, &format!("key {at}"), b"done").await })
    });
    for settled in settling.collect::<Vec<_>>() {
        settled.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_makes_the_next_tables_and_drops_those_long_past() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "old", b"done").await;
    database.step_clock(micros(10 * RETENTION)).await;
    complete(&store, "new", b"done").await;
    assert_eq!(store.purge(100).await.unwrap().deleted, 1);
    assert_eq!(database.number(TABLES).await, 2);
    database.step_clock(micros(RETENTION / 2)).await;
    store.purge(100).await.unwrap();
    assert_eq!(database.number(TABLES).await, 4);
    assert_eq!(database.number(TABLES).await, database.number(ATTACHED).await);
    let loaded = store.load(vec![operation("new").id()]).await.remove(0).unwrap();
    assert_eq!(loaded.record.unwrap().tag(), StateTag::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_left_detached_by_a_crash_is_dropped_by_the_next_purge() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "old", b"done").await;
    let bucket = database.number("SELECT max(bucket)::int8 FROM hapax.operations").await;
    let detach = format!("ALTER TABLE hapax.responses DETACH PARTITION hapax.responses_{bucket}");
    database.client().await.batch_execute(&detach).await.unwrap();
    database.step_clock(micros(10 * RETENTION)).await;
    store.purge(100).await.unwrap();
    let left = format!("SELECT count(to_regclass('hapax.responses_{bucket}'))");
    assert_eq!(database.number(&left).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_record_whose_table_is_gone_can_be_claimed_anew() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "old", b"done").await;
    database.step_clock(micros(2 * RETENTION)).await;
    database.execute("DELETE FROM hapax.responses", &[]).await;
    let id = operation("old").id();
    let record = store.load(vec![id]).await.remove(0).unwrap().record.unwrap();
    assert_eq!(record.tag(), StateTag::Buried);
    let over = Over::Spent(record.stamp());
    let anew = Claim { over, fence: record.fence.next(), ..claim("old", 2) };
    let claims = vec![Write::Claim(anew)];
    let claimed = store.commit(claims).await.remove(0);
    assert!(matches!(claimed, Ok(Written::Done { .. })), "{claimed:?}");
}
