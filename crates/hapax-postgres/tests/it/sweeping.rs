//! The search for abandoned records, where it could miss one.

use std::time::Duration;

use hapax_core::{
    Doubt, Fence, Owner, Store,
    store::{By, Claim, Over, Renew, Settle, Settlement, Write, Written},
};
use hapax_verify::conformance::Backend;

use crate::{
    backend::Postgres,
    reference::{LEASE, claim, complete, completion, operation},
};

const LOGGED: &str = "SELECT count(*) FROM hapax.claim_log AS l, unnest(l.places) AS p(place) \
                      JOIN hapax.operations AS o ON o.ctid = p.place WHERE o.state = 2";
const FILED: &str = "SELECT count(*) FROM hapax.unfinished";
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
const KILL_WAITING: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                            WHERE datname = current_database() AND wait_event_type = 'Lock'";

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

fn renewal(key: &str) -> Write {
    let (id, fence, owner) = (operation(key).id(), Fence::FIRST, Owner(1));
    Write::Renew(Renew { id, fence, owner, lease: LEASE })
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_says_where_it_wrote_its_claims() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let claims = (0..100).map(|at| Write::Claim(claim(&format!("key {at}"), 1)));
    store.commit(claims.collect()).await;
    abandon(&store, "alone").await;
    assert_eq!(database.number("SELECT count(*) FROM hapax.claim_log").await, 2);
    assert_eq!(database.number(LOGGED).await, 101);
    // Claims that lost leave nothing to look at.
    abandon(&store, "alone").await;
    assert_eq!(database.number("SELECT count(*) FROM hapax.claim_log").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_an_unfinished_record_anew_files_it() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    for key in ["renewed", "watched", "taken over"] {
        abandon(&store, key).await;
    }
    store.commit(vec![renewal("renewed")]).await;
    assert_eq!(database.number(FILED).await, 1);
    let watching = store.clone();
    let watching = tokio::spawn(async move { watching.watch(operation("watched").id()).await });
    while database.number(FILED).await < 2 {
        tokio::task::yield_now().await;
    }
    watching.abort();
    database.step_clock(micros(2 * LEASE)).await;
    let id = operation("taken over").id();
    let seen = store.load(vec![id]).await.remove(0).unwrap().record.unwrap();
    let over = Over::Abandoned(seen.stamp());
    let follow = Claim { over, fence: seen.fence.next(), ..claim("taken over", 2) };
    let taken = store.commit(vec![Write::Claim(follow)]).await.remove(0);
    assert!(matches!(taken, Ok(Written::Done { .. })), "{taken:?}");
    assert_eq!(database.number(FILED).await, 3);
    assert_eq!(overdue(&store).await, ["renewed", "watched"]);
    database.step_clock(micros(2 * LEASE)).await;
    assert_eq!(overdue(&store).await, ["renewed", "taken over", "watched"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_renewed_for_hours_is_found_when_it_no_longer_is() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    abandon(&store, "long").await;
    for _ in 0..20 {
        database.step_clock(micros(LEASE * 2 / 3)).await;
        store.commit(vec![renewal("long")]).await;
        assert!(overdue(&store).await.is_empty());
    }
    assert_eq!(database.number(FILED).await, 1);
    database.step_clock(micros(2 * LEASE)).await;
    assert_eq!(overdue(&store).await, ["long"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_finished_is_kept_in_mind_no_longer() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "done", b"").await;
    abandon(&store, "late").await;
    database.step_clock(micros(LEASE / 2)).await;
    assert!(overdue(&store).await.is_empty());
    assert_eq!(database.number("SELECT count(*) FROM hapax.claim_log").await, 0);
    assert_eq!(database.number(FILED).await, 1);
    store.commit(vec![Write::Settle(completion("late", 1, b""))]).await;
    database.step_clock(micros(2 * LEASE)).await;
    assert!(overdue(&store).await.is_empty());
    assert_eq!(database.number(FILED).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_nothing_points_to_is_met_by_the_lap() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    abandon(&store, "passed").await;
    // As after a restore: places mean nothing any more.
    database.client().await.batch_execute("VACUUM FULL hapax.operations").await.unwrap();
    database.execute("DELETE FROM hapax.claim_log", &[]).await;
    database.step_clock(micros(10 * LEASE)).await;
    assert_eq!(overdue(&store).await, ["passed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_commits_late_is_found() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "first", b"").await;
    let mut operator = database.client().await;
    let hold = "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$; \
                CREATE TRIGGER hold AFTER INSERT ON hapax.claim_log EXECUTE FUNCTION hold()";
    operator.batch_execute(hold).await.unwrap();
    let holding = operator.transaction().await.unwrap();
    holding.batch_execute("SELECT pg_advisory_xact_lock(4711)").await.unwrap();
    let writer = store.clone();
    let late = tokio::spawn(async move { abandon(&writer, "late").await });
    while database.number(WAITING).await == 0 {
        tokio::task::yield_now().await;
    }
    database.step_clock(micros(10 * LEASE)).await;
    assert!(overdue(&store).await.is_empty());
    holding.rollback().await.unwrap();
    late.await.unwrap();
    database.step_clock(micros(2 * LEASE)).await;
    assert_eq!(overdue(&store).await, ["late"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_dies_loses_no_claim() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    abandon(&store, "abandoned").await;
    database.step_clock(micros(2 * LEASE)).await;
    let mut operator = database.client().await;
    let blocking = operator.transaction().await.unwrap();
    blocking.batch_execute("LOCK TABLE hapax.unfinished IN SHARE MODE").await.unwrap();
    let sweeper = store.clone();
    let searching = tokio::spawn(async move { sweeper.overdue(100).await });
    while database.number(KILL_WAITING).await == 0 {
        tokio::task::yield_now().await;
    }
    assert!(searching.await.unwrap().is_err());
    blocking.rollback().await.unwrap();
    assert_eq!(database.number(LOGGED).await, 1);
    assert_eq!(overdue(&store).await, ["abandoned"]);
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
async fn more_records_than_are_asked_for_come_in_turns() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    for at in 0..6 {
        abandon(&store, &format!("key {at}")).await;
    }
    database.step_clock(micros(2 * LEASE)).await;
    let mut found = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let page = store.overdue(2).await.unwrap();
        assert_eq!(page.len(), 2);
        found.extend(page.iter().map(|record| record.operation.key().as_str().to_owned()));
    }
    assert_eq!(found.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_ahead_hides_neither_what_came_before_nor_after() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "before", b"").await;
    database.step_clock(micros(1000 * LEASE)).await;
    assert!(overdue(&store).await.is_empty());
    abandon(&store, "ahead").await;
    database.step_clock(-micros(1000 * LEASE)).await;
    abandon(&store, "after").await;
    database.step_clock(micros(2 * LEASE)).await;
    assert_eq!(overdue(&store).await, ["after", "ahead"]);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_doubt_is_listed_whenever_it_comes_and_not_when_it_is_over() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let listed = async || {
        let state = Some(hapax_core::StateTag::InDoubt);
        let filter = hapax_core::store::Filter { state, ..Default::default() };
        let page = hapax_core::store::Page { after: None, limit: 10 };
        store.list(filter, page).await.unwrap().len()
    };
    abandon(&store, "doubtful").await;
    let (id, fence, owner) = (operation("doubtful").id(), Fence::FIRST, Owner(1));
    let doubt = Settlement::InDoubt(Doubt::Unanswered);
    let by = By::Owner { fence, owner };
    let settle = |to| Write::Settle(Settle { id, by, to, keep: Duration::ZERO });
    for _ in 0..2 {
        store.commit(vec![settle(doubt.clone())]).await;
        store.purge(100).await.unwrap();
        assert_eq!(listed().await, 1);
    }
    store.commit(vec![settle(completion("doubtful", 1, b"known").to)]).await;
    assert_eq!(listed().await, 0);
    store.purge(100).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM hapax.doubts").await, 0);
}
