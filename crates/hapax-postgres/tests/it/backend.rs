//! A database of its own for each test.

use std::{
    env, fs,
    path::Path,
    process,
    sync::atomic::{AtomicI64, AtomicU32, Ordering},
    thread,
};

use hapax_core::{Faults, OperationId};
use hapax_postgres::{Options, Store};
use hapax_verify::conformance::{Backend, Damage};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, Config, NoTls, types::ToSql};

/// A database that is dropped at the end of the test.
pub(crate) struct Postgres {
    pub(crate) name: String,
    server: Config,
    /// How it is entered, if not as who made it.
    entry: Option<Config>,
    clock_offset: AtomicI64,
}

impl Postgres {
    /// An empty database, without our schema.
    pub(crate) async fn empty() -> Self {
        Self::empty_on(server()).await
    }

    /// The same on another server.
    pub(crate) async fn empty_on(server: Config) -> Self {
        Self::copy_of("template1", server).await
    }

    /// A database with our schema and nothing in it: a copy, which is made sooner than all migrations run.
    pub(crate) async fn migrated() -> Self {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let template = TEMPLATE.get_or_init(|| async { template(&server()).await }).await;
        Self::copy_of(template, server()).await
    }

    async fn copy_of(template: &str, server: Config) -> Self {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("hapax_test_{}_{number}", process::id());
        let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
        connect(&server).await.batch_execute(&create).await.unwrap();
        Self { name, server, entry: None, clock_offset: AtomicI64::new(0) }
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = self.entry.clone().unwrap_or_else(|| self.server.clone());
        config.dbname(&self.name);
        config
    }

    /// From now on it is entered as this role.
    pub(crate) fn act_as(&mut self, role: &str, password: &str) {
        let mut config = self.server.clone();
        config.user(role).password(password);
        self.entry = Some(config);
    }

    pub(crate) async fn store(&self) -> Store {
        self.store_with(Options::default()).await
    }

    pub(crate) async fn store_with(&self, options: Options) -> Store {
        Store::connect(&self.config(), options).await.unwrap()
    }

    /// A plain connection, as an operator has.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.config()).await
    }

    /// A connection with the rights of whoever runs the server.
    pub(crate) async fn superuser(&self) -> Client {
        let mut config = self.server.clone();
        config.dbname(&self.name);
        connect(&config).await
    }

    pub(crate) async fn execute(&self, text: &str, params: &[&(dyn ToSql + Sync)]) -> u64 {
        self.client().await.execute(text, params).await.unwrap()
    }

    /// The single number a query answers with.
    pub(crate) async fn number(&self, text: &str) -> i64 {
        self.client().await.query_one(text, &[]).await.unwrap().get(0)
    }
}

impl Backend for Postgres {
    type Store = Store;

    const PLACES: &'static [&'static str] = Store::PLACES;

    async fn create() -> Self {
        Self::migrated().await
    }

    async fn open(&self, faults: Faults) -> Store {
        self.store_with(Options { faults, ..Options::default() }).await
    }

    async fn step_clock(&self, micros: i64) {
        let offset = self.clock_offset.fetch_add(micros, Ordering::SeqCst) + micros;
        let clock = format!(
            "CREATE OR REPLACE FUNCTION hapax.clock() RETURNS bigint LANGUAGE sql VOLATILE AS \
             'SELECT (date_part(''epoch'', clock_timestamp()) * 1000000)::bigint + {offset}'"
        );
        self.client().await.batch_execute(&clock).await.unwrap();
    }

    async fn damage(&self, id: OperationId, damage: Damage) {
        let text = match damage {
            Damage::FlippedBodyBit => {
                "UPDATE hapax.operations SET answer = set_bit(answer, at, 1 - get_bit(answer, at)) \
                 FROM (SELECT 8 * octet_length(answer) - 5 AS at FROM hapax.operations \
                       WHERE id = $1::text::uuid) AS last WHERE id = $1::text::uuid"
            }
            Damage::LostOutcome => {
                "UPDATE hapax.operations SET answer = NULL WHERE id = $1::text::uuid"
            }
            Damage::UnknownState => {
                "UPDATE hapax.operations SET state = 99 WHERE id = $1::text::uuid"
            }
            Damage::NewerRow => {
                "UPDATE hapax.operations SET format = format + 1 WHERE id = $1::text::uuid"
            }
            Damage::FlippedStepBit => {
                "UPDATE hapax.steps SET result = set_bit(result, 3, 1 - get_bit(result, 3)) \
                 WHERE id = $1::text::uuid"
            }
            Damage::NewerStep => {
                "UPDATE hapax.steps SET format = format + 1 WHERE id = $1::text::uuid"
            }
            Damage::NewerOutcome => {
                "UPDATE hapax.operations SET answer = set_byte(answer, 20, get_byte(answer, 20) + 1) \
                 WHERE id = $1::text::uuid"
            }
        };
        assert_eq!(self.execute(text, &[&id.to_string()]).await, 1, "{damage:?} found nothing");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let text = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async { connect(&server).await.batch_execute(&text).await })
        });
        let dropped = dropping.join();
        if !thread::panicking() {
            dropped.unwrap().unwrap();
        }
    }
}

/// The database with our schema that others are copied from, made by whoever comes first.
///
/// It stays on the server, under a name that says which statements made it.
async fn template(server: &Config) -> String {
    let script = hapax_postgres::script(0);
    let digest = <[u8; 32]>::from(Sha256::digest(&script));
    let name =
        format!("hapax_template_{:016x}", u64::from_be_bytes(*digest.first_chunk().unwrap()));
    let client = connect(server).await;
    // Until this connection ends.
    client.batch_execute("SELECT pg_advisory_lock(hashtext('hapax_template'))").await.unwrap();
    let is_there = "SELECT 1 FROM pg_database WHERE datname = $1";
    if client.query_opt(is_there, &[&name]).await.unwrap().is_none() {
        let making = format!("{name}_making");
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {making}")).await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {making}")).await.unwrap();
        let mut config = server.clone();
        connect(config.dbname(&making)).await.batch_execute(&script).await.unwrap();
        let done = format!("ALTER DATABASE {making} RENAME TO {name}");
        client.batch_execute(&done).await.unwrap();
    }
    name
}

pub(crate) async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.expect("the test server must answer");
    tokio::spawn(connection);
    client
}

pub(crate) fn server() -> Config {
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.services/postgres.url");
    let url = env::var("HAPAX_POSTGRES_URL").or_else(|_| fs::read_to_string(written));
    let url = url.expect("no PostgreSQL server: run `cargo xtask services up`");
    url.trim().parse().expect("the server's URL must be one")
}
