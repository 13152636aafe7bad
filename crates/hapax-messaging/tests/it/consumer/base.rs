//! Databases with a table of effects.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use deadpool_postgres::{Manager, Pool};
use hapax_core::inbox::Inbox;
use hapax_messaging::consumer::HandlerError;
use hapax_postgres::{
    Store,
    transaction::{ForMessages, deadpool},
};
use hapax_sqlite::inbox;
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};

/// A database with a table of effects, and how a handler writes to it.
pub(crate) trait Base: Send + Sync + 'static {
    type Inbox: Inbox;

    /// An empty one.
    async fn create() -> Self;

    /// What another process needs to open it.
    fn address(&self) -> String;

    /// Opens the one at this address.
    fn open(address: &str) -> Self::Inbox;

    fn inbox(&self) -> Self::Inbox {
        Self::open(&self.address())
    }

    /// Writes an effect; a name that is there already is refused.
    fn act(
        tx: &mut <Self::Inbox as Inbox>::Transaction,
        effect: &str,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// What a query answers with, one text for each row.
    fn texts(&self, query: &str) -> impl Future<Output = Vec<String>> + Send;

    /// The name of a table or view of the inbox.
    fn named(table: &str) -> String;
}

pub(crate) struct Sqlite(TempDir);

impl Base for Sqlite {
    type Inbox = inbox::Database;

    async fn create() -> Self {
        let base = Self(TempDir::new().unwrap());
        drop(base.inbox());
        base.client().execute_batch("CREATE TABLE effects (name TEXT)").unwrap();
        base
    }

    fn address(&self) -> String {
        self.path().to_str().unwrap().to_owned()
    }

    fn open(address: &str) -> inbox::Database {
        inbox::Database::open(address).unwrap()
    }

    async fn act(tx: &mut inbox::Transaction, effect: &str) -> Result<(), HandlerError> {
        tx.execute("INSERT INTO effects VALUES (?1)", [effect])?;
        Ok(())
    }

    async fn texts(&self, query: &str) -> Vec<String> {
        let client = self.client();
        let mut read = client.prepare(query).unwrap();
        let rows = read.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn named(table: &str) -> String {
        format!("hapax_{table}")
    }
}

impl Sqlite {
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("shop.db")
    }

    pub(crate) fn client(&self) -> rusqlite::Connection {
        let client = rusqlite::Connection::open(self.path()).unwrap();
        client.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        client
    }
}

pub(crate) struct Postgres(String);

impl Base for Postgres {
    type Inbox = deadpool::Database;

    async fn create() -> Self {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("hapax_consumer_{}_{number}", process::id());
        let create = format!("CREATE DATABASE {name}");
        connect(&server()).await.batch_execute(&create).await.unwrap();
        let base = Self(name);
        Store::migrate(&config(&base.0)).await.unwrap();
        let table = "CREATE TABLE effects (name text)";
        connect(&config(&base.0)).await.batch_execute(table).await.unwrap();
        base
    }

    fn address(&self) -> String {
        self.0.clone()
    }

    fn open(address: &str) -> deadpool::Database {
        let pool = Pool::builder(Manager::new(config(address), NoTls)).max_size(8);
        deadpool::Database::new(pool.build().unwrap())
    }

    async fn act(
        tx: &mut deadpool::Transaction<ForMessages>,
        effect: &str,
    ) -> Result<(), HandlerError> {
        tx.execute("INSERT INTO effects VALUES ($1)", &[&effect]).await?;
        Ok(())
    }

    async fn texts(&self, query: &str) -> Vec<String> {
        let rows = connect(&config(&self.0)).await.query(query, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    fn named(table: &str) -> String {
        format!("hapax.{table}")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.0);
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                connect(&server()).await.batch_execute(&drop).await.unwrap();
            });
        });
        dropping.join().unwrap();
    }
}

pub(crate) fn config(name: &str) -> Config {
    let mut config = server();
    config.dbname(name);
    config
}

fn server() -> Config {
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.services/postgres.url");
    let url = env::var("HAPAX_POSTGRES_URL").or_else(|_| fs::read_to_string(written));
    let url = url.expect("no PostgreSQL server: run `cargo xtask services up`");
    url.trim().parse().expect("the server's URL must be one")
}

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
