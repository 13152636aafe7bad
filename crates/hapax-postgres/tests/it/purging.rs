//! Purges walk over the table, whatever lies where.

use hapax_core::Store;
use hapax_verify::conformance::Backend;

use crate::{
    backend::Postgres,
    reference::{RETENTION, complete},
};

/// Records that are past retention or not, in no order, on far more pages than one call walks over.
const STOCK: &str = "
    INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, fence, owner, recovery, doubt, state,
        tombstone, created_at, changed_at, expires_at, until, answer)
    SELECT gen_random_uuid(), 1, 'acme', 'stock', n::text, '', 1, 1, 1, 0, CASE WHEN n % 7 = 0 THEN 5 ELSE 3 END,
           CASE WHEN n % 5 = 0 THEN 3600000000 ELSE 0 END, 0, 0, hapax.clock() + CASE WHEN n % 2 = 0 THEN -1 ELSE 1 END * 60000000::int8 * (n % 50 + 1),
           0, sha256(n::text::bytea)
    FROM generate_series(1, 60000) AS n";
const PAST: &str = "SELECT count(*) FROM hapax.operations AS o, (SELECT hapax.clock() AS now) AS c \
                    WHERE o.state <> 5 AND o.expires_at <= c.now AND o.tombstone <= c.now - o.expires_at";
const KEPT: &str = "SELECT count(*) FROM hapax.operations AS o WHERE o.state <> 5 AND o.expires_at > hapax.clock()";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_past_retention_goes_wherever_it_lies() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    assert_eq!(database.execute(STOCK, &[]).await, 60_000);
    let blocks = "SELECT pg_relation_size('hapax.operations') / 8192";
    assert!(database.number(blocks).await > 2 * 1024);
    let (past, kept) = (database.number(PAST).await, database.number(KEPT).await);
    let (mut purged, mut idle) = (hapax_core::store::Purged::default(), 0);
    while idle < 8 {
        let more = store.purge(500).await.unwrap();
        assert!(more.total() <= 500);
        idle = if more.total() == 0 { idle + 1 } else { 0 };
        purged.deleted += more.deleted;
        purged.buried += more.buried;
    }
    assert_eq!(purged.deleted, usize::try_from(past).unwrap());
    assert!(purged.buried > 0);
    assert_eq!(database.number(PAST).await, 0);
    assert_eq!(database.number(KEPT).await, kept);
    let doubtful = "SELECT count(*) FROM hapax.operations WHERE state = 5";
    assert_eq!(database.number(doubtful).await, 60_000 / 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_goes_by_the_clock_that_is_trusted() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "kept", b"").await;
    let now = store.clock().await.unwrap().now;
    let mark = hapax_core::clock::ClockMark { steady_since: now, seen_at: now, trusted_until: now };
    store.keep_clock(mark).await.unwrap();
    database.step_clock(i64::try_from((3 * RETENTION).as_micros()).unwrap()).await;
    assert_eq!(store.purge(100).await.unwrap().total(), 0);
    let later = now.plus(3 * RETENTION);
    let mark =
        hapax_core::clock::ClockMark { steady_since: now, seen_at: later, trusted_until: later };
    store.keep_clock(mark).await.unwrap();
    assert_eq!(store.purge(100).await.unwrap().deleted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn purges_side_by_side_remove_each_record_once() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    for at in 0..40 {
        complete(&store, &format!("key {at}"), b"").await;
    }
    database.step_clock(i64::try_from((2 * RETENTION).as_micros()).unwrap()).await;
    let purging = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.purge(100).await.unwrap().deleted })
    });
    let mut deleted = 0;
    for purging in purging.collect::<Vec<_>>() {
        deleted += purging.await.unwrap();
    }
    assert_eq!(deleted, 40);
    assert_eq!(database.number("SELECT count(*) FROM hapax.operations").await, 0);
}
