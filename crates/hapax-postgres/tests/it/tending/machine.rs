//! What sweeps and purges in SQL make of a record is what the machine makes of it, and the engine.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Body, Doubt, Fence, Fingerprint, Key, Operation, OperationId, Outcome, Owner, Record, Recovery,
    Scope, State, StateTag, Store as _, Sweep, Tenant, Timestamp, apply,
    apply::Purge,
    settle,
    store::{By, Settle, Settlement},
};
use hapax_engine::{Engine, Options};
use tokio::task::yield_now;

use super::{DAY, outline, purge, put, sweep};
use crate::backend::Postgres;

const RECORDS: usize = 700;
const MINUTE: Duration = Duration::from_secs(60);

/// Records in every state, with instants on either side of now and never near it.
fn draw(random: &mut fastrand::Rng, now: Timestamp, with_requests: bool) -> Vec<Record> {
    (0..RECORDS).map(|number| draw_one(random, now, with_requests, number)).collect()
}

fn draw_one(
    random: &mut fastrand::Rng,
    now: Timestamp,
    with_requests: bool,
    number: usize,
) -> Record {
    let around = |random: &mut fastrand::Rng, spans: &[Duration]| {
        let span = spans[random.usize(..spans.len())];
        if random.bool() { now.plus(span) } else { now.minus(span) }
    };
    let lease_until = around(random, &[MINUTE, 30 * MINUTE, 120 * MINUTE]);
    let expires_at = around(random, &[5 * MINUTE, DAY, 30 * DAY]);
    let request = (with_requests && random.bool()).then(|| Bytes::from_static(b"POST"));
    let body = Body::Kept(Bytes::from(vec![7; random.usize(..300)]));
    let outcome = Outcome::new(201, Vec::new(), body).unwrap();
    let tag = StateTag::ALL[random.usize(..StateTag::ALL.len())];
    let (tenant, scope) = (Tenant::parse("acme").unwrap(), Scope::parse("POST /pay").unwrap());
    Record {
        operation: Operation::new(tenant, scope, Key::parse(format!("key {number}")).unwrap()),
        fingerprint: Fingerprint::from_bytes([3; Fingerprint::BYTES]),
        fence: Fence::FIRST,
        owner: Owner(random.i64(1..9)),
        recovery: [Recovery::Resend, Recovery::Probe, Recovery::Hold][random.usize(..3)],
        created_at: expires_at.minus([10 * MINUTE, DAY][random.usize(..2)]),
        changed_at: now.minus(40 * DAY),
        expires_at,
        tombstone: [Duration::ZERO, 10 * MINUTE, 2 * DAY][random.usize(..3)],
        state: match tag {
            StateTag::Pending => {
                State::Pending { pick_up_by: lease_until, request: Bytes::from_static(b"later") }
            }
            StateTag::Running => State::Running { lease_until, request },
            StateTag::Completed => State::Completed { outcome },
            StateTag::Failed => State::Failed { outcome },
            StateTag::InDoubt => State::InDoubt { doubt: Doubt::Unanswered, request },
            StateTag::Released => State::Released,
            StateTag::Buried => State::Buried,
        },
    }
}

/// What a sweep makes of a record that nobody here can finish: as the engine's sweeper, which leaves a
/// record with a request to those who stored it.
fn swept(now: Timestamp, record: &Record, has_steps: bool) -> Option<Record> {
    if !apply::is_overdue(now, record) || record.request().is_some() {
        return None;
    }
    let to = match settle::sweep(record, false) {
        Sweep::Leave => return None,
        Sweep::Release if !has_steps => Settlement::Released,
        Sweep::Release | Sweep::GiveUp => Settlement::InDoubt(Doubt::OwnerVanished),
        Sweep::TakeOver(_) => unreachable!("nobody can finish it"),
    };
    let by = By::Onlooker(record.stamp());
    let end = Settle { id: record.operation.id(), by, to, keep: Duration::ZERO };
    apply::settle(now, Some(record), &end)
}

fn ids(records: &[Record]) -> Vec<OperationId> {
    records.iter().map(|record| record.operation.id()).collect()
}

async fn stored(store: &hapax_postgres::Store, records: &[Record]) -> Vec<Option<Record>> {
    let mut all = Vec::new();
    for page in ids(records).chunks(100) {
        let page = store.load(page.to_vec()).await;
        all.extend(page.into_iter().map(|found| found.unwrap().record.map(|record| *record)));
    }
    all
}

/// Every fifth record has a finished step of its present life, every seventh one of an earlier life.
async fn add_steps(database: &Postgres) {
    let text = "INSERT INTO hapax.steps (id, number, life, at, format, version, name, digest, result) \
                SELECT o.id, 1, o.created_at - CASE WHEN split_part(o.key, ' ', 2)::int % 5 = 0 THEN 0 ELSE 1 END, \
                       0, 1, 1, 'charge', '', '' FROM hapax.operations AS o \
                WHERE split_part(o.key, ' ', 2)::int % 5 = 0 OR split_part(o.key, ' ', 2)::int % 7 = 0";
    database.execute(text, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_records_are_swept_and_purged_as_by_the_machine() {
    let seed = 0x5eeb;
    let mut random = fastrand::Rng::with_seed(seed);
    let database = Postgres::empty().await;
    let store = database.store().await;
    let began = store.clock().await.unwrap().now;
    let records = draw(&mut random, began, true);
    put(&database, &records).await;
    add_steps(&database).await;
    let client = database.client().await;

    let (in_doubt, released) = sweep(&client, 10_000).await;
    let after = stored(&store, &records).await;
    let now = store.clock().await.unwrap().now;
    let (mut doubts, mut releases) = (0, 0);
    for (number, (record, after)) in records.iter().zip(&after).enumerate() {
        let after = after.as_ref().expect("a sweep removes nothing");
        let has_steps = number % 5 == 0;
        let Some(seen) = swept(now, record, has_steps) else {
            assert_eq!(after, record, "seed {seed:#x}: it must be left alone");
            continue;
        };
        let written = after.changed_at;
        assert!(began <= written && written <= now, "seed {seed:#x}: {record:?}, {after:?}");
        assert_eq!(Some(after), swept(written, record, has_steps).as_ref(), "seed {seed:#x}");
        doubts += i64::from(seen.tag() == StateTag::InDoubt);
        releases += i64::from(seen.tag() == StateTag::Released);
    }
    assert_eq!((in_doubt, released), (doubts, releases));
    assert!(doubts > 5 && releases > 5, "{doubts} {releases}");
    let listed = "SELECT count(*) FROM hapax.doubts AS d JOIN hapax.operations AS o USING (id) WHERE d.since = o.changed_at";
    assert_eq!(database.number(listed).await, doubts);

    let before = after.into_iter().map(Option::unwrap).collect::<Vec<_>>();
    let [removed, buried, timed_out, ..] = purge(&client, 10_000).await;
    let after = stored(&store, &before).await;
    let mut counts = [0; 3];
    for (record, after) in before.iter().zip(&after) {
        let written = after.as_ref().map_or(now, |after| after.changed_at);
        let context = format!("seed {seed:#x}: {record:?} became {after:?}");
        match apply::purge(if written > began { written } else { now }, record) {
            Purge::Keep => assert_eq!(after.as_ref(), Some(record), "{context}"),
            Purge::Delete => {
                assert_eq!(after, &None, "{context}");
                counts[0] += 1;
            }
            Purge::Bury(expected) => {
                assert_eq!(after.as_ref(), Some(&expected), "{context}");
                counts[1] += 1;
            }
            Purge::TimeOut(expected) => {
                assert_eq!(after.as_ref(), Some(&expected), "{context}");
                counts[2] += 1;
            }
        }
    }
    assert_eq!([removed, buried, timed_out], counts);
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    let orphans = "SELECT count(*) FROM hapax.steps AS s \
                   WHERE NOT EXISTS (SELECT FROM hapax.operations AS o WHERE o.id = s.id)";
    assert_eq!(database.number(orphans).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_records_come_to_the_same_by_an_engine_and_by_the_functions() {
    let seed = 0x7717;
    let (ours, theirs) = (Postgres::empty().await, Postgres::empty().await);
    let (store, twin) = (ours.store().await, theirs.store().await);
    let now = store.clock().await.unwrap().now;
    let records = draw(&mut fastrand::Rng::with_seed(seed), now, false);
    for database in [&ours, &theirs] {
        put(database, &records).await;
    }
    let client = ours.client().await;
    let (in_doubt, released) = sweep(&client, 40).await;
    assert_eq!(in_doubt + released, 40, "no more at once than told");
    sweep(&client, 10_000).await;
    loop {
        let [removed, buried, timed_out, ..] = purge(&client, 50).await;
        assert!(removed + buried + timed_out <= 50, "no more at once than told");
        if removed + buried + timed_out == 0 {
            break;
        }
    }
    assert_eq!(ours.number(LEFT).await, 0);

    let every = Duration::from_millis(20);
    let options = Options { sweep_every: every, purge_every: every, ..Options::default() };
    let engine = Engine::start(twin.clone(), options);
    while theirs.number(LEFT).await > 0 {
        yield_now().await;
    }
    engine.shut_down(Duration::from_secs(5)).await;
    let pairs = stored(&store, &records).await.into_iter().zip(stored(&twin, &records).await);
    for (ours, theirs) in pairs {
        let (ours, theirs) = (ours.as_ref().map(outline), theirs.as_ref().map(outline));
        assert_eq!(ours, theirs, "seed {seed:#x}");
    }
}

/// What a sweep or a purge has yet to do.
const LEFT: &str = "SELECT count(*) FROM hapax.operations AS o, (SELECT hapax.clock() AS now) AS c \
    WHERE (o.state = 2 AND (o.until <= c.now OR o.until > c.now + 3600000000)) \
       OR (o.state IN (1, 3, 4, 6) AND o.expires_at <= c.now) \
       OR (o.state = 7 AND o.expires_at + o.tombstone <= c.now)";

#[tokio::test(flavor = "multi_thread")]
async fn what_no_version_wrote_is_neither_swept_nor_purged() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let now = store.clock().await.unwrap().now;
    let mut random = fastrand::Rng::with_seed(1);
    let records = draw(&mut random, now, false);
    put(&database, &records).await;
    database.execute("UPDATE hapax.operations SET format = 2 WHERE state % 2 = 0", &[]).await;
    database.execute("UPDATE hapax.operations SET state = 99 WHERE format = 1", &[]).await;
    let client = database.client().await;
    let all = "SELECT count(*) FROM hapax.operations WHERE format = 2 OR state = 99";
    let before = database.number(all).await;
    for _ in 0..2 {
        assert_eq!(sweep(&client, 10_000).await, (0, 0));
        assert_eq!(purge(&client, 10_000).await, [0; 5]);
    }
    assert_eq!(database.number(all).await, before);
    assert_eq!(before, i64::try_from(RECORDS).unwrap());
}
