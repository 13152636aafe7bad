//! A database that only the SQL functions use stays clean, and nothing in it stays stuck.

use std::time::Duration;

use hapax_core::{
    Owner, StateTag, Store as _,
    outbox::{Destination, OutboxLog as _, RelayLease, Start, Topics},
};
use hapax_postgres::{Outbox, OutboxOptions};
use hapax_verify::conformance::Backend as _;

use super::{DAY, micros, purge, sweep, tend};
use crate::{backend::Postgres, functions::Service, outbox::turn_over, reference::operation};

const MINUTE: Duration = Duration::from_secs(60);

/// Time goes by while somebody tends every nine minutes.
async fn live_on(database: &Postgres, span: Duration) {
    let client = database.client().await;
    let step = 9 * MINUTE;
    for _ in 0..span.as_secs().div_ceil(step.as_secs()) {
        database.step_clock(micros(step)).await;
        tend(&client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_begin_becomes_a_doubt_and_everything_else_goes() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let service = Service::new(&database).await;
    let begin = |key: &str| format!("SELECT FROM hapax.begin('acme', 'POST /pay', '{key}')");
    service.run(&begin("forgotten")).await;
    let record = "SELECT hapax.record('acme', 'POST /pay', 'done', tombstone => '2 hours')";
    service.run(record).await;
    service.run("SELECT hapax.first_delivery('mailer', 'm-1', retention => '1 hour')").await;
    service.run("SELECT hapax.fail_delivery('mailer', 'm-2', retention => '1 hour')").await;
    let client = database.client().await;
    tend(&client).await;
    assert_eq!(
        database.number("SELECT count(*) FROM hapax.doubts").await,
        0,
        "its lease is not over"
    );

    live_on(&database, 9 * MINUTE).await;
    let found =
        store.load(vec![operation("forgotten").id()]).await.remove(0).unwrap().record.unwrap();
    assert_eq!(found.tag(), StateTag::InDoubt);
    assert_eq!(database.number("SELECT count(*) FROM hapax.doubts").await, 1);
    let asked = service.ask("'acme', 'POST /pay', 'forgotten'").await.unwrap();
    assert_eq!(asked.decision, "in_doubt");

    live_on(&database, 70 * MINUTE).await;
    assert_eq!(database.number("SELECT count(*) FROM hapax.inbox").await, 0);
    assert_eq!(database.number("SELECT count(*) FROM hapax.inbox_attempts").await, 0);
    live_on(&database, DAY - 65 * MINUTE).await;
    let asked = service.ask("'acme', 'POST /pay', 'done'").await.unwrap();
    assert_eq!(asked.decision, "gone", "it is buried for two hours");
    live_on(&database, 130 * MINUTE).await;
    let left = "SELECT string_agg(key, ' ') = 'forgotten' FROM hapax.operations";
    let left: bool = client.query_one(left, &[]).await.unwrap().get(0);
    assert!(left, "nothing in doubt ever goes by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_go_after_four_hundred_days_and_doubts_that_are_over_at_once() {
    let database = Postgres::empty().await;
    database.store().await;
    let note = "INSERT INTO hapax.notes (at, fence, id, format, deed, phase, who, why) \
                VALUES (hapax.clock(), 1, gen_random_uuid(), 1, 1, 2, 'ada', 'because')";
    database.execute(note, &[]).await;
    database.execute("INSERT INTO hapax.doubts VALUES (gen_random_uuid(), 1)", &[]).await;
    let client = database.client().await;
    assert_eq!(purge(&client, 10).await, [0; 5]);
    assert_eq!(database.number("SELECT count(*) FROM hapax.doubts").await, 0);
    database.execute("UPDATE hapax.notes SET at = at - 34560000000000 + 60000000", &[]).await;
    assert_eq!(purge(&client, 10).await, [0; 5]);
    database.execute("UPDATE hapax.notes SET at = at - 61000000", &[]).await;
    assert_eq!(purge(&client, 10).await, [0, 0, 0, 0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_goes_when_every_destination_is_done_with_it() {
    let database = Postgres::empty().await;
    database.store().await;
    let outbox = Outbox::connect(&database.config(), OutboxOptions::default()).await.unwrap();
    let client = database.client().await;
    let emit = "SELECT count(hapax.emit('t', 'k', 'x')) FROM generate_series(1, 20)";
    assert_eq!(database.number(emit).await, 20);
    turn_over(&database).await;
    let purge_outbox = "SELECT hapax.purge_outbox()";
    assert_eq!(database.number(purge_outbox).await, 0, "nobody has it yet");
    let destination = Destination::new("ledger", Topics::all()).unwrap();
    outbox.register(destination, Start::Beginning).await.unwrap();
    let span = Duration::from_secs(30);
    let lease = RelayLease { destination: "ledger".to_owned(), owner: Owner(7), span };
    outbox.lease(lease).await.unwrap().expect("it is registered");
    assert_eq!(database.number(purge_outbox).await, 0, "it is not sent");
    database.execute("UPDATE hapax.outbox_lanes SET low = 1 << 17", &[]).await;
    // A reader is in the way.
    let mut reader = database.client().await;
    let reading = reader.transaction().await.unwrap();
    reading.batch_execute("SELECT count(*) FROM hapax.outbox").await.unwrap();
    assert_eq!(database.number(purge_outbox).await, 0);
    reading.rollback().await.unwrap();
    tend(&client).await;
    assert_eq!(database.number("SELECT count(*) FROM hapax.outbox").await, 0);
    let relays = "SELECT count(*) FROM hapax.outbox_relays";
    assert_eq!(database.number(relays).await, 1);
    live_on(&database, 65 * MINUTE).await;
    assert_eq!(database.number(relays).await, 0, "it vanished an hour ago");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_tended_inside_of_a_transaction_or_by_a_stranger() {
    let database = Postgres::empty().await;
    database.store().await;
    let service = Service::new(&database).await;
    let refused = service.refused("BEGIN; CALL hapax.tend()").await;
    assert_eq!(refused.code, "2D000");
    service.run("ROLLBACK").await;
    for text in ["SELECT hapax.sweep(0)", "SELECT hapax.purge(NULL)", "CALL hapax.tend('0')"] {
        assert_eq!(service.refused(text).await.code, "HX001", "{text}");
    }
    let role = crate::functions::rights::Role::create().await;
    let stranger = role.enter_beside(&database).await;
    let calls = [
        "SELECT hapax.sweep()",
        "SELECT hapax.purge()",
        "SELECT hapax.purge_outbox()",
        "CALL hapax.tend()",
        "SELECT hapax.schedule()",
        "SELECT hapax.unschedule()",
        "SELECT hapax.keep_clock()",
        "SELECT hapax.tend_piece(24, 0)",
        "SELECT hapax.settle_overdue(gen_random_uuid())",
    ];
    for text in calls {
        assert_eq!(stranger.refused(text).await.code, "42501", "{text}");
    }
    drop(database);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_table_is_swept_and_purged_wherever_a_record_lies() {
    let database = Postgres::empty().await;
    database.store().await;
    let stock = "INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, fence, owner, recovery, \
        doubt, state, tombstone, created_at, changed_at, expires_at, until, answer) \
        SELECT gen_random_uuid(), 1, 'acme', 'stock', n::text, '', 1, 1, 3, 0, CASE WHEN n % 100 = 0 THEN 2 ELSE 3 END, \
               0, 0, 0, CASE WHEN n % 2 = 0 THEN 1 ELSE hapax.clock() + 3600000000 END, \
               CASE WHEN n % 100 = 0 THEN 1 ELSE 0 END, CASE WHEN n % 100 <> 0 THEN sha256(n::text::bytea) END \
        FROM generate_series(1, 60000) AS n";
    assert_eq!(database.execute(stock, &[]).await, 60_000);
    assert!(database.number("SELECT pg_relation_size('hapax.operations') / 8192").await > 2048);
    // Whatever level is the default.
    let level = format!(
        "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'",
        database.name
    );
    database.client().await.batch_execute(&level).await.unwrap();
    let client = database.client().await;
    let (mut calls, mut swept) = (0, 0);
    while swept < 600 && calls < 20 {
        let (in_doubt, released) = sweep(&client, 250).await;
        assert!(in_doubt <= 250 && released == 0);
        (calls, swept) = (calls + 1, swept + in_doubt);
    }
    assert_eq!(swept, 600);
    tend(&client).await;
    let left = "SELECT count(*) FROM hapax.operations WHERE expires_at = 1 AND state = 3";
    assert_eq!(database.number(left).await, 0);
    assert_eq!(database.number("SELECT count(*) FROM hapax.operations").await, 30_000 + 600);
}
