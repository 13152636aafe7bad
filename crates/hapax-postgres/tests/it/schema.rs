//! Migrations, and databases that cannot be used.

use std::error::Error;

use hapax_core::Store as _;
use hapax_postgres::{OpenError, Options, Store, VERSION};
use tokio_postgres::Config;

use crate::backend::{Postgres, server};

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
    operator.batch_execute("CREATE SCHEMA hapax; CREATE TABLE hapax.unfinished ()").await.unwrap();
    assert!(matches!(
        refusal(&database.config(), true).await,
        OpenError::Migration { version: 10, .. }
    ));
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'hapax'::regnamespace";
    assert_eq!(database.number(tables).await, 1);
    operator.batch_execute("DROP TABLE hapax.unfinished").await.unwrap();
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
    assert!(matches!(waiting.await.unwrap(), Err(OpenError::Migration { version: 10, .. })));
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
async fn a_schema_that_was_never_released_is_neither_used_nor_changed() {
    let database = Postgres::empty().await;
    let operator = database.client().await;
    operator
        .batch_execute(
            "CREATE SCHEMA hapax; CREATE TABLE hapax.meta (version int, works_with int); \
             INSERT INTO hapax.meta VALUES (9, 1)",
        )
        .await
        .unwrap();
    for migrate in [true, false] {
        let refusal = refusal(&database.config(), migrate).await;
        assert!(matches!(refusal, OpenError::NeverReleased { found: 9 }), "{refusal}");
    }
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'hapax'::regnamespace";
    assert_eq!(database.number(tables).await, 1);
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
