//! The clock is watched by whoever tends, as by a process that starts.

use std::time::Duration;

use hapax_core::{
    Store as _, Timestamp,
    clock::{ClockMark, ClockReading, ClockTrust},
    limits::CLOCK_STAYS,
};
use hapax_verify::conformance::Backend as _;

use super::{DAY, micros, purge, sweep, tend};
use crate::{
    backend::Postgres,
    reference::{LEASE, RETENTION, claim, complete, operation},
};

const MARKS: usize = 20_000;
const MINUTE: Duration = Duration::from_secs(60);

/// An instant near one of those at which the rule turns.
fn near(random: &mut fastrand::Rng, now: i64) -> i64 {
    let turns = [0, 5, 20, 60, 600, 1200, 86_400];
    let turn = turns[random.usize(..turns.len())] * 1_000_000 * [1, -1][random.usize(..2)];
    now + turn + random.i64(-2..3)
}

#[tokio::test(flavor = "multi_thread")]
async fn random_marks_are_followed_as_by_a_process_that_starts() {
    let seed = 0xc10c;
    let mut random = fastrand::Rng::with_seed(seed);
    let database = Postgres::empty().await;
    database.store().await;
    let now = 1_800_000_000_000_000;
    let marks: Vec<[i64; 3]> =
        (0..MARKS).map(|_| [(); 3].map(|()| near(&mut random, now))).collect();
    let column = |at: usize| marks.iter().map(|mark| mark[at]).collect::<Vec<_>>();
    let text = "SELECT t.steady, t.until, t.is_news \
                FROM unnest($2::int8[], $3::int8[], $4::int8[]) WITH ORDINALITY AS m(since, seen, until, n), \
                     hapax.clock_trust($1, m.since, m.seen, m.until) AS t ORDER BY m.n";
    let client = database.client().await;
    let rows = client.query(text, &[&now, &column(0), &column(1), &column(2)]).await.unwrap();
    assert_eq!(rows.len(), MARKS);
    let mut news = 0;
    for ([since, seen, until], row) in marks.into_iter().zip(rows) {
        let [steady_since, seen_at, trusted_until] =
            [since, seen, until].map(Timestamp::from_micros);
        let kept = ClockMark { steady_since, seen_at, trusted_until };
        let (steady, until, is_news) = expected(now, Some(kept));
        assert_eq!(
            (row.get(0), row.get(1), row.get(2)),
            (steady, until, is_news),
            "seed {seed:#x}: {kept:?}"
        );
        news += usize::from(is_news);
    }
    assert!(news > 1000 && MARKS - news > 100, "{news}");
    let never = "SELECT * FROM hapax.clock_trust($1, NULL, NULL, NULL)";
    let row = client.query_one(never, &[&now]).await.unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), expected(now, None));
}

fn expected(now: i64, mark: Option<ClockMark>) -> (i64, i64, bool) {
    let reading = ClockReading { now: Timestamp::from_micros(now), mark };
    let next = ClockTrust::first(reading, CLOCK_STAYS).mark();
    let is_news = !mark.is_some_and(|kept| next.is_as_good_as(kept));
    (next.steady_since.as_micros(), next.trusted_until.as_micros(), is_news)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_ends_no_retention_until_it_has_stayed() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let client = database.client().await;
    tend(&client).await;
    for _ in 0..25 {
        database.step_clock(micros(MINUTE)).await;
        tend(&client).await;
    }
    complete(&store, "kept", b"").await;
    database.step_clock(micros(3 * DAY)).await;
    for _ in 0..9 {
        assert_eq!(purge(&client, 100).await, [0; 5]);
        database.step_clock(micros(MINUTE)).await;
    }
    assert_eq!(database.number("SELECT count(*) FROM hapax.operations").await, 1);
    database.step_clock(micros(2 * MINUTE)).await;
    assert_eq!(purge(&client, 100).await, [1, 0, 0, 0, 0], "it has stayed: three days are over");
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_goes_on_where_only_the_functions_watch() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let client = database.client().await;
    complete(&store, "old", b"").await;
    let steps = micros(RETENTION) / micros(9 * MINUTE) - 1;
    for _ in 0..steps {
        database.step_clock(micros(9 * MINUTE)).await;
        tend(&client).await;
    }
    assert_eq!(database.number("SELECT count(*) FROM hapax.operations").await, 1);
    for _ in 0..2 {
        database.step_clock(micros(9 * MINUTE)).await;
        tend(&client).await;
    }
    assert_eq!(database.number("SELECT count(*) FROM hapax.operations").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_jump_leases_are_not_judged_for_a_minute() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let client = database.client().await;
    tend(&client).await;
    store.commit(vec![hapax_core::store::Write::Claim(claim("running", 1))]).await;
    database.step_clock(micros(DAY)).await;
    assert_eq!(sweep(&client, 100).await, (0, 0), "its owner may be alive");
    let id = operation("running").id();
    let found = store.load(vec![id]).await.remove(0).unwrap().record.unwrap();
    assert_eq!(found.tag(), hapax_core::StateTag::Running);
    database.step_clock(micros(2 * LEASE + MINUTE)).await;
    assert_eq!(sweep(&client, 100).await, (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_finds_the_mark_held_waits_for_nobody() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let client = database.client().await;
    tend(&client).await;
    complete(&store, "old", b"").await;
    let mut holder = database.client().await;
    let holding = holder.transaction().await.unwrap();
    holding
        .batch_execute("SELECT FROM hapax.clock_mark FOR UPDATE; SELECT FROM hapax.laps FOR UPDATE")
        .await
        .unwrap();
    let timed = "SET lock_timeout = '1s'";
    client.batch_execute(timed).await.unwrap();
    tend(&client).await;
    holding.rollback().await.unwrap();
}
