//! A database of its own for each test.

use std::{
    env, fs,
    path::Path,
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};

use deadpool_postgres::{Manager, Pool};
use hapax::postgres::Store;
use payments_transaction::TABLES;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls};

/// How long it may take until somebody waits.
const WAITING_LIMIT: Duration = Duration::from_secs(60);

/// A database with both schemas, dropped at the end of the test.
pub(crate) struct Postgres {
    pub(crate) name: String,
}

/// What is in a database: payments, events and records of Hapax.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) payments: i64,
    pub(crate) events: i64,
    pub(crate) records: i64,
}

pub(crate) const NOTHING: Found = Found { payments: 0, events: 0, records: 0 };
pub(crate) const ONE: Found = Found { payments: 1, events: 1, records: 1 };

impl Postgres {
    pub(crate) async fn new() -> Self {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let number = DATABASES.fetch_add(1, Relaxed);
        let name = format!("hapax_payments_{}_{number}", process::id());
        connect(&server()).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let postgres = Self { name };
        prepare(&postgres.config()).await;
        postgres
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = server();
        config.dbname(&self.name);
        config
    }

    pub(crate) fn url(&self) -> String {
        let url = url();
        let (server, _) = url.rsplit_once('/').expect("the server's URL must name a database");
        format!("{server}/{}", self.name)
    }

    pub(crate) fn pool(&self) -> Pool {
        pool(&self.config())
    }

    pub(crate) async fn found(&self) -> Found {
        found(&self.config()).await
    }

    /// The single number a query answers with.
    pub(crate) async fn number(&self, text: &str) -> i64 {
        connect(&self.config()).await.query_one(text, &[]).await.unwrap().get(0)
    }

    /// Returns as soon as so many connections wait for a lock.
    pub(crate) async fn until_waiting(&self, connections: i64) {
        let client = connect(&self.config()).await;
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let seen = async {
            while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < connections {
                tokio::task::yield_now().await;
            }
        };
        timeout(WAITING_LIMIT, seen).await.expect("somebody must come to wait");
    }
}

/// Installs both schemas.
pub(crate) async fn prepare(config: &Config) {
    Store::migrate(config).await.unwrap();
    connect(config).await.batch_execute(TABLES).await.unwrap();
}

pub(crate) fn pool(config: &Config) -> Pool {
    Pool::builder(Manager::new(config.clone(), NoTls)).max_size(20).build().unwrap()
}

pub(crate) async fn found(config: &Config) -> Found {
    let counts = "SELECT (SELECT count(*) FROM payments), (SELECT count(*) FROM hapax.outbox), \
                  (SELECT count(*) FROM hapax.operations)";
    let row = connect(config).await.query_one(counts, &[]).await.unwrap();
    Found { payments: row.get(0), events: row.get(1), records: row.get(2) }
}

pub(crate) async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.expect("the test server must answer");
    tokio::spawn(connection);
    client
}

fn server() -> Config {
    url().parse().expect("the server's URL must be one")
}

fn url() -> String {
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.services/postgres.url");
    let url = env::var("HAPAX_POSTGRES_URL").or_else(|_| fs::read_to_string(written));
    url.expect("no PostgreSQL server: run `cargo xtask services up`").trim().to_owned()
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let text = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async { connect(&server()).await.batch_execute(&text).await })
        });
        let dropped = dropping.join();
        if !thread::panicking() {
            dropped.unwrap().unwrap();
        }
    }
}
