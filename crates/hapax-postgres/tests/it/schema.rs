//! Migrations, and databases that cannot be used.

use std::error::Error;

use hapax_core::Store as _;
use hapax_postgres::{OpenError, Options, Store, VERSION};
use tokio_postgres::Config;

use crate::{
    backend::{Postgres, server},
    functions::{Service, rights::Role},
};

async fn refusal(config: &Config, migrate: bool) -> OpenError {
    let options = Options { migrate, ..Options::default() };
    Store::connect(config, options).await.expect_err("it must be refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_at_the_same_time_make_one_schema_and_one_salt() {
    let database = Postgres::empty().await;
    let openings = (0..8).map(|_| {
        let config = database.config();
        tokio::spawn(
            async move { Store::connect(&config, Options::default()).await.unwrap().salt() },
        )
    });
    let openings: Vec<_> = openings.collect();
    let mut salts = Vec::new();
    for opening in openings {
        salts.push(opening.await.unwrap());
    }
    assert!(salts.iter().all(|salt| *salt == salts[0]));
    assert_eq!(database.number("SELECT count(*) FROM hapax.meta").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_migration_leaves_nothing_behind_and_is_run_again() {
    let database = Postgres::empty().await;
    let operator = database.client().await;
    // The migration ends here because somebody else has a table in its way.
    operator
        .batch_execute("CREATE SCHEMA hapax; CREATE TABLE hapax.sweep_cursors ()")
        .await
        .unwrap();
    assert!(matches!(
        refusal(&database.config(), true).await,
        OpenError::Migration { version: 1, .. }
    ));
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'hapax'::regnamespace";
    assert_eq!(database.number(tables).await, 1);
    operator.batch_execute("DROP TABLE hapax.sweep_cursors").await.unwrap();
    database.store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_whose_process_dies_is_run_again() {
    let database = Postgres::empty().await;
    let operator = database.client().await;
    operator
        .batch_execute("BEGIN; SELECT pg_advisory_xact_lock(hashtext('hapax.migrate'))")
        .await
        .unwrap();
    let config = database.config();
    let waiting = tokio::spawn(async move { Store::migrate(&config).await });
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while database.number(kill).await == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(waiting.await.unwrap(), Err(OpenError::Migration { version: 1, .. })));
    operator.batch_execute("ROLLBACK").await.unwrap();
    database.store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_needs_newer_code_is_refused() {
    let database = Postgres::empty().await;
    database.store().await;
    let newer = VERSION + 1;
    database.execute("UPDATE hapax.meta SET version = $1, works_with = $1", &[&newer]).await;
    let refusal = refusal(&database.config(), true).await;
    assert!(
        matches!(refusal, OpenError::TooNew { found, needed } if found == newer && needed == newer)
    );
    assert!(refusal.to_string().contains("upgrade this process"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_that_still_works_with_this_code_is_used() {
    let database = Postgres::empty().await;
    database.store().await;
    database.execute("UPDATE hapax.meta SET version = version + 1", &[]).await;
    database.store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_is_not_created_unless_told_to() {
    let database = Postgres::empty().await;
    let refusal = refusal(&database.config(), false).await;
    assert!(matches!(refusal, OpenError::NotMigrated { found: 0 }));
    assert!(refusal.to_string().contains("hapax migrate"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_database_says_how_to_create_it() {
    let mut config = server();
    config.dbname("hapax_test_that_nobody_created");
    let refusal = refusal(&config, true).await;
    assert!(matches!(refusal, OpenError::NoDatabase(_)));
    assert!(refusal.to_string().contains("createdb"));
    assert!(refusal.source().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_run_says_what_to_check() {
    let mut config = Config::new();
    config.host("127.0.0.1").port(1).user("nobody").dbname("nothing");
    assert!(matches!(refusal(&config, true).await, OpenError::Connect(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_database_is_refused() {
    let database = Postgres::empty().await;
    database.store().await;
    let name = &database.name;
    let text = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    database.client().await.batch_execute(&text).await.unwrap();
    assert!(matches!(refusal(&database.config(), true).await, OpenError::ReadOnly));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_for_people_speaks_in_words() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    crate::reference::complete(&store, "readable", b"{\"paid\": true}").await;
    let row = database.client().await.query_one(
        "SELECT state, status, body_json ->> 'paid', created_at <= now() FROM hapax.operations_readable", &[],
    ).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "completed");
    assert_eq!(row.get::<_, i32>(1), 201);
    assert_eq!(row.get::<_, &str>(2), "true");
    assert!(row.get::<_, bool>(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_from_before_there_were_notes_is_brought_up_to_date() {
    let database = Postgres::empty().await;
    let operator = database.client().await;
    operator.batch_execute("CREATE SCHEMA hapax").await.unwrap();
    operator.batch_execute(include_str!("../../migrations/0001_store.sql")).await.unwrap();
    let refusal = refusal(&database.config(), false).await;
    assert!(matches!(refusal, OpenError::NotMigrated { found: 1 }));
    let id = hapax_core::OperationId::from_bytes([1; 16]);
    assert!(database.store().await.notes(id, 1).await.unwrap().is_empty());
}

/// The schema as a version before bound roles left it.
async fn of_version_seven(database: &Postgres) {
    let texts = [
        include_str!("../../migrations/0001_store.sql"),
        include_str!("../../migrations/0002_notes.sql"),
        include_str!("../../migrations/0003_transactions.sql"),
        include_str!("../../migrations/0004_steps.sql"),
        include_str!("../../migrations/0005_natural.sql"),
        include_str!("../../migrations/0006_outbox.sql"),
        include_str!("../../migrations/0007_inbox.sql"),
    ];
    let operator = database.client().await;
    operator
        .batch_execute("CREATE SCHEMA hapax; CREATE TABLE payments (key text, amount int)")
        .await
        .unwrap();
    for text in texts {
        operator.batch_execute(text).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_call_the_functions_before_an_upgrade_can_call_them_after_it() {
    let role = Role::create().await;
    let database = Postgres::empty().await;
    of_version_seven(&database).await;
    let service = role.enter(&database).await;
    service.run("BEGIN").await;
    assert_eq!(service.pay("key").await, Ok(true));
    service.run("COMMIT").await;
    // Prepared before, with bytes that the server knew to be bytes.
    let emit = service.client.prepare("SELECT hapax.emit('t', 'k', $1)").await.unwrap();
    service.client.query(&emit, &[&&b"\xff"[..]]).await.unwrap();
    database.store().await;
    service.client.query(&emit, &[&&b"\xff"[..]]).await.unwrap();
    assert_eq!(service.pay("key").await, Ok(false));
    service.run("BEGIN").await;
    assert_eq!(service.pay("another").await, Ok(true));
    service.run("SELECT hapax.first_delivery('c', 'm'); COMMIT").await;
    assert_eq!(service.refused("SELECT hapax.bind_tenants('postgres', '{a}')").await.code, "42501");
    assert_eq!(database.number("SELECT count(*) FROM hapax.outbox").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_waits_for_open_emitters_and_keeps_the_order_of_their_keys() {
    let database = Postgres::empty().await;
    of_version_seven(&database).await;
    let [first, second] = [Service::new(&database).await, Service::new(&database).await];
    first.run("BEGIN; SELECT hapax.emit('t', 'k', 'one')").await;
    let config = database.config();
    let upgrade = tokio::spawn(async move { Store::migrate(&config).await });
    second.until_waiting(1).await;
    // This one comes with the old code, and waits in the middle of it for the upgrade.
    let late = tokio::spawn(async move {
        second.run("BEGIN; SELECT hapax.emit('t', 'j', 'one')").await;
        second
    });
    Service::new(&database).await.until_waiting(2).await;
    first.run("COMMIT").await;
    upgrade.await.unwrap().unwrap();
    let second = late.await.unwrap();
    // And this one with the new code: it has to wait for the lock of the old.
    let next = tokio::spawn(async move {
        first.run("SELECT hapax.emit('t', 'j', 'two')").await;
    });
    Service::new(&database).await.until_waiting(1).await;
    second.run("COMMIT").await;
    next.await.unwrap();
    let order = "SELECT count(*) FROM hapax.outbox AS a JOIN hapax.outbox AS b ON a.position < b.position \
                 WHERE a.key = 'j' AND convert_from(a.payload, 'UTF8') = 'one' AND convert_from(b.payload, 'UTF8') = 'two'";
    assert_eq!(database.number(order).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_for_somebody_else_to_run_does_what_a_migration_does() {
    let database = Postgres::empty().await;
    let name = &database.name;
    let off = format!("ALTER DATABASE {name} SET standard_conforming_strings = off");
    database.client().await.batch_execute(&off).await.unwrap();
    database.client().await.batch_execute(&hapax_postgres::script(0)).await.unwrap();
    let options = Options { migrate: false, ..Options::default() };
    let store = database.store_with(options).await;
    crate::reference::complete(&store, "key", b"body").await;
}
