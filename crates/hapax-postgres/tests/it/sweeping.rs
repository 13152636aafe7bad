//! The search for abandoned records, where its cursor could go wrong.

use std::time::Duration;

use hapax_core::{Store, store::Write};
use hapax_verify::conformance::Backend;

use crate::{
    backend::Postgres,
    reference::{LEASE, claim, complete},
};

async fn abandon(store: &impl Store, key: &str) {
    store.commit(vec![Write::Claim(claim(key, 1))]).await;
}

async fn overdue(store: &impl Store) -> Vec<String> {
    let found = store.overdue(100).await.unwrap();
    let mut keys: Vec<_> =
        found.iter().map(|record| record.operation.key().as_str().to_owned()).collect();
    keys.sort_unstable();
    keys
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_the_frontier_passed_unseen_is_met_by_the_lap() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    abandon(&store, "passed").await;
    database.step_clock(micros(10 * LEASE)).await;
    assert_eq!(overdue(&store).await, ["passed"]);
    let passed = "UPDATE hapax.operations AS o SET filed_at = s.frontier - 1 \
                  FROM hapax.sweep_cursors AS s WHERE s.retention = o.retention";
    assert_eq!(database.execute(passed, &[]).await, 1);
    assert_eq!(overdue(&store).await, ["passed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_nobody_takes_is_found_again_and_hides_no_other() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    abandon(&store, "left").await;
    for round in 0..3 {
        database.step_clock(micros(2 * LEASE)).await;
        abandon(&store, &format!("round {round}")).await;
        complete(&store, &format!("done {round}"), b"").await;
        database.step_clock(micros(2 * LEASE)).await;
        let expected: Vec<_> = (0..=round).map(|round| format!("round {round}")).collect();
        let expected: Vec<_> = [vec!["left".to_owned()], expected].concat();
        assert_eq!(overdue(&store).await, expected);
        assert_eq!(overdue(&store).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frontier_left_in_the_future_by_the_clock_is_brought_back() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "before", b"").await;
    database.step_clock(micros(1000 * LEASE)).await;
    assert!(overdue(&store).await.is_empty());
    database.step_clock(-micros(1000 * LEASE)).await;
    abandon(&store, "after").await;
    database.step_clock(micros(2 * LEASE)).await;
    assert_eq!(overdue(&store).await, ["after"]);
    let future = "SELECT count(*) FROM hapax.sweep_cursors WHERE frontier > hapax.clock()";
    assert_eq!(database.number(future).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sweepers_side_by_side_miss_nothing() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    for at in 0..20 {
        abandon(&store, &format!("key {at}")).await;
    }
    database.step_clock(micros(2 * LEASE)).await;
    let sweepers = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { overdue(&store).await.len() })
    });
    for sweeper in sweepers.collect::<Vec<_>>() {
        assert_eq!(sweeper.await.unwrap(), 20);
    }
    assert_eq!(overdue(&store).await.len(), 20);
}
