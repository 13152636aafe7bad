//! Several who tend at once, beside engines, and killed in the middle.

use std::time::Duration;

use hapax_core::{StateTag, Store as _, store::Write};
use hapax_engine::{Engine, Options};
use hapax_verify::conformance::Backend as _;
use tokio::task::{JoinSet, yield_now};

use super::{micros, purge, sweep, tend};
use crate::{
    backend::Postgres,
    reference::{LEASE, RETENTION, claim, complete, completion, operation},
};

const KEYS: usize = 60;

async fn abandon(store: &hapax_postgres::Store, key: &str) {
    store.commit(vec![Write::Claim(claim(key, 1))]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_tend_side_by_side_with_an_engine_do_everything_once() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    for at in 0..KEYS {
        abandon(&store, &format!("abandoned {at}")).await;
    }
    database.step_clock(micros(2 * LEASE)).await;
    let every = Duration::from_millis(5);
    let options = Options { sweep_every: every, purge_every: every, ..Options::default() };
    let engine = Engine::start(store.clone(), options);
    let mut sweeping = JoinSet::new();
    for _ in 0..4 {
        let client = database.client().await;
        sweeping.spawn(async move {
            let mut swept = 0;
            for _ in 0..20 {
                let (in_doubt, released) = sweep(&client, 7).await;
                swept += in_doubt + released;
            }
            swept
        });
    }
    let ours: i64 = sweeping.join_all().await.into_iter().sum();
    let running = "SELECT count(*) FROM hapax.operations WHERE state = 2";
    while database.number(running).await > 0 {
        yield_now().await;
    }
    let theirs = engine.stats().swept_released + engine.stats().swept_in_doubt;
    assert_eq!(ours + i64::try_from(theirs).unwrap(), i64::try_from(KEYS).unwrap());
    engine.shut_down(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purges_side_by_side_remove_each_record_once() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    for at in 0..KEYS {
        complete(&store, &format!("key {at}"), b"").await;
    }
    database.step_clock(micros(2 * RETENTION)).await;
    let mut purging = JoinSet::new();
    for most in [3, 10, 100, 1000] {
        let client = database.client().await;
        purging.spawn(async move {
            let mut removed = 0;
            for _ in 0..30 {
                removed += purge(&client, most).await[0];
            }
            removed
        });
    }
    let removed: i64 = purging.join_all().await.into_iter().sum();
    assert_eq!(removed, i64::try_from(KEYS).unwrap());
    assert_eq!(database.number("SELECT count(*) FROM hapax.operations").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_lives_keeps_its_key_however_often_others_tend() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let client = database.client().await;
    abandon(&store, "alive").await;
    for _ in 0..10 {
        database.step_clock(micros(LEASE * 2 / 3)).await;
        let (id, fence) = (operation("alive").id(), hapax_core::Fence::FIRST);
        let owner = hapax_core::Owner(1);
        let renewal = hapax_core::store::Renew { id, fence, owner, lease: LEASE };
        store.commit(vec![Write::Renew(renewal)]).await;
        assert_eq!(sweep(&client, 100).await, (0, 0));
    }
    let settled = store.commit(vec![Write::Settle(completion("alive", 1, b""))]).await;
    assert!(settled[0].is_ok());
    database.step_clock(micros(2 * LEASE)).await;
    tend(&client).await;
    let found = store.load(vec![operation("alive").id()]).await.remove(0).unwrap().record;
    assert_eq!(found.unwrap().tag(), StateTag::Completed);
    assert_eq!(database.number("SELECT count(*) FROM hapax.unfinished").await, 0);
}

/// Whatever `hapax.tend` writes to, it is held up there and killed; what it had begun is as if it had
/// not, and the next one does it.
#[tokio::test(flavor = "multi_thread")]
async fn wherever_it_is_killed_the_next_one_does_what_was_left() {
    for place in ["doubts", "unfinished", "inbox", "notes", "claim_log", "operations"] {
        let database = Postgres::empty().await;
        let store = database.store().await;
        let mut holder = database.client().await;
        let begun = "SELECT hapax.begin('acme', 'POST /pay', 'forgotten'); \
                     SELECT hapax.first_delivery('mailer', 'm-1', retention => '1 second'); \
                     INSERT INTO hapax.notes (at, fence, id, format, deed, phase, who, why) \
                     VALUES (1, 1, gen_random_uuid(), 1, 1, 2, 'ada', 'because')";
        holder.batch_execute(begun).await.unwrap();
        complete(&store, "old", b"").await;
        abandon(&store, "abandoned").await;
        database.step_clock(micros(2 * RETENTION)).await;
        let holding = holder.transaction().await.unwrap();
        let lock = format!("LOCK TABLE hapax.{place} IN SHARE MODE");
        holding.batch_execute(&lock).await.unwrap();
        let tending = database.client().await;
        let killed = tokio::spawn(async move { tending.batch_execute("CALL hapax.tend()").await });
        let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while database.number(kill).await == 0 {
            yield_now().await;
        }
        assert!(killed.await.unwrap().is_err(), "{place}");
        holding.rollback().await.unwrap();

        tend(&database.client().await).await;
        for (key, tag) in [("forgotten", StateTag::InDoubt), ("abandoned", StateTag::Released)] {
            let found = store.load(vec![operation(key).id()]).await.remove(0).unwrap().record;
            let tag = (tag != StateTag::Released).then_some(tag);
            // What is released and past its retention is purged in the same round.
            assert_eq!(found.map(|record| record.tag()), tag, "{place}, {key}");
        }
        let left = "SELECT (SELECT count(*) FROM hapax.inbox) + (SELECT count(*) FROM hapax.notes) \
                    + (SELECT count(*) FROM hapax.claim_log) + (SELECT count(*) FROM hapax.unfinished)";
        assert_eq!(database.number(left).await, 0, "{place}");
        assert_eq!(database.number("SELECT count(*) FROM hapax.operations").await, 1, "{place}");
    }
}
