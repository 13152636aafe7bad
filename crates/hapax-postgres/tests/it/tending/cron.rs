//! pg_cron calls it, on a server that has pg_cron.

use std::time::Duration;

use hapax_core::Store as _;
use hapax_postgres::{Options, Store};
use hapax_services::pg_cron;
use tokio::{task::spawn_blocking, time::timeout};
use tokio_postgres::Config;

use crate::{
    backend::{Postgres, connect},
    functions::Service,
    reference::operation,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_pg_cron_says_what_to_call_where_it_is() {
    let database = Postgres::empty().await;
    database.store().await;
    let service = Service::new(&database).await;
    let refused = service.refused("SELECT hapax.schedule()").await;
    assert_eq!(refused.code, "55000");
    let hint = refused.hint.unwrap();
    let call = format!(
        "cron.schedule_in_database('hapax in {0}', '* * * * *', 'CALL hapax.tend()', '{0}', 'postgres')",
        database.name
    );
    assert!(hint.contains(&call), "{hint}");
    assert_eq!(service.number("SELECT hapax.unschedule()::int::int8").await, 0);
    assert_eq!(service.refused("SELECT hapax.schedule(NULL)").await.code, "HX001");
}

#[tokio::test(flavor = "multi_thread")]
async fn pg_cron_tends_the_database_by_itself() {
    let server = spawn_blocking(pg_cron::start).await.unwrap().unwrap();
    let admin: Config = server.url().parse().unwrap();
    let make = "CREATE EXTENSION pg_cron; CREATE ROLE shop LOGIN; GRANT CREATE ON DATABASE postgres TO shop; \
                GRANT USAGE ON SCHEMA cron TO shop";
    connect(&admin).await.batch_execute(make).await.unwrap();
    let mut config = admin.clone();
    config.user("shop");
    let store = Store::connect(&config, Options::default()).await.unwrap();
    let service = Service { client: connect(&config).await };
    let begun = "SELECT hapax.begin('acme', 'POST /pay', 'forgotten'); \
                 UPDATE hapax.operations SET until = 1, changed_at = 1; \
                 SELECT hapax.record('acme', 'POST /pay', 'old'); \
                 UPDATE hapax.operations SET expires_at = 1 WHERE key = 'old'";
    service.run(begun).await;
    // Whoever has all rights schedules it for the owner, the owner for itself; it is one job.
    let every_minute = "SELECT hapax.schedule()";
    let job = service.number(every_minute).await;
    assert_eq!(Service { client: connect(&admin).await }.number(every_minute).await, job);
    let jobs =
        "SELECT count(*) FROM cron.job WHERE username = 'shop' AND command = 'CALL hapax.tend()'";
    assert_eq!(service.number(jobs).await, 1);
    let left = "SELECT count(*) FROM hapax.operations WHERE state <> 5";
    while service.number(left).await > 0 {
        // Within a minute: whoever watches the key is told that it is in doubt.
        let watching = store.watch(operation("forgotten").id());
        let _ = timeout(Duration::from_secs(1), watching).await;
    }
    assert_eq!(service.number("SELECT count(*) FROM hapax.doubts").await, 1);
    assert_eq!(service.number("SELECT count(*) FROM hapax.clock_mark").await, 1);
    let failed = "SELECT count(*) FROM cron.job_run_details WHERE status = 'failed'";
    assert_eq!(Service { client: connect(&admin).await }.number(failed).await, 0);
    assert_eq!(service.number("SELECT hapax.unschedule()::int::int8").await, 1);
    assert_eq!(service.number("SELECT hapax.unschedule()::int::int8").await, 0);
    assert_eq!(service.number(jobs).await, 0);
}
