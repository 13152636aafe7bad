//! Through PgBouncer in transaction mode: many clients share few connections of the server.

use hapax_services::{
    ServiceError,
    pgbouncer::{PoolMode, Pooler},
};
use tokio::task::spawn_blocking;
use tokio_postgres::{Config, config::Host};

use super::{LEVELS, Service, concurrency::storm, shop};
use crate::backend::{Postgres, connect};

/// A pooler in front of this database, and how to connect through it.
pub(crate) async fn pool(database: &Postgres, mode: PoolMode) -> (Pooler, Config) {
    started(database, move |url| Pooler::start(url, mode)).await
}

/// The same in transaction mode, of a version that keeps the prepared statements of clients apart.
pub(crate) async fn pool_keeping_statements(database: &Postgres) -> (Pooler, Config) {
    started(database, Pooler::keeping_statements).await
}

async fn started(
    database: &Postgres,
    start: impl FnOnce(&str) -> Result<Pooler, ServiceError> + Send + 'static,
) -> (Pooler, Config) {
    let config = database.config();
    let [Host::Tcp(host)] = config.get_hosts() else { unreachable!("the server is on TCP") };
    let (user, port) = (config.get_user().unwrap(), config.get_ports()[0]);
    let url = format!("postgres://{user}@{host}:{port}/{}", database.name);
    let starting = spawn_blocking(move || start(&url));
    let pooler = starting.await.unwrap().unwrap();
    let config = pooler.url().parse().unwrap();
    (pooler, config)
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_clients_of_a_pooler_pay_once() {
    for level in LEVELS {
        let (database, _store) = shop().await;
        let (_pooler, config) = pool(&database, PoolMode::Transaction).await;
        assert_eq!(storm(&config, level, 1).await, (1, 1, 1), "{level}");
        assert_eq!(storm(&config, level, 1).await, (0, 1, 1), "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_leaves_nothing_behind_in_the_servers_sessions() {
    let (database, _store) = shop().await;
    let (_pooler, config) = pool(&database, PoolMode::Transaction).await;
    let [first, second] =
        [Service { client: connect(&config).await }, Service { client: connect(&config).await }];
    first.run("BEGIN").await;
    assert_eq!(first.pay("key").await, Ok(true));
    second.run("BEGIN").await;
    let begun = second.ask("'acme', 'POST /pay', 'key', wait => '20 milliseconds'").await.unwrap();
    assert_eq!(begun.decision, "busy");
    let waiting = tokio::spawn(async move {
        assert_eq!(second.pay("key").await, Ok(false));
        second.run("COMMIT").await;
        second
    });
    Service::new(&database).await.until_waiting(1).await;
    first.run("COMMIT").await;
    let second = waiting.await.unwrap();
    // Both sessions of the server are asked: each of the two transactions has one.
    for service in [&first, &second] {
        service.run("BEGIN").await;
    }
    for service in [&first, &second] {
        let left = "SELECT (current_setting('lock_timeout') <> '0')::int + count(*) FROM pg_locks \
                    WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
        assert_eq!(service.number(left).await, 0);
    }
}
