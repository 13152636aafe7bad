//! A database with the schema and a table of effects, and agents that use it.

use std::{
    env, fs,
    net::SocketAddr,
    path::Path,
    process,
    sync::atomic::{AtomicI64, AtomicU32, Ordering},
    thread,
};

use hapax_sdk_tests::{Agent, Sdk};
use serde_json::{Value, json};
use tokio_postgres::{Client, Config, NoTls};

/// What work writes to. A commit with a name that begins with `slow` takes its time.
const TABLES: &str = "
    CREATE TABLE effects (name text NOT NULL);
    CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF new.name LIKE ''slow%'' THEN PERFORM pg_sleep(0.4); END IF; RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION dawdle();
";

/// What a driver is tested in. The database is dropped at the end.
pub(crate) struct World {
    pub(crate) sdk: Sdk,
    pub(crate) driver: &'static str,
    name: String,
    server: Config,
    keys: AtomicU32,
    clock_offset: AtomicI64,
}

impl World {
    pub(crate) async fn new(sdk: Sdk, driver: &'static str) -> Self {
        let world = Self::empty(sdk, driver).await;
        let client = world.client().await;
        client.batch_execute(&hapax_postgres::script(0)).await.unwrap();
        client.batch_execute(TABLES).await.unwrap();
        world
    }

    /// The same for whoever brings a driver along.
    pub(crate) async fn bare(sdk: Sdk) -> Self {
        Self::empty(sdk, "").await
    }

    /// A database without our schema.
    pub(crate) async fn empty(sdk: Sdk, driver: &'static str) -> Self {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let (name, server) = (format!("hapax_sdk_{}_{number}", process::id()), server());
        connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (keys, clock_offset) = (AtomicU32::new(0), AtomicI64::new(0));
        Self { sdk, driver, name, server, keys, clock_offset }
    }

    pub(crate) async fn agent(&self) -> Agent {
        Agent::start(self.sdk, self.driver, &self.url()).await
    }

    pub(crate) async fn agent_at(&self, url: &str) -> Agent {
        Agent::start(self.sdk, self.driver, url).await
    }

    /// A key that nobody used.
    pub(crate) fn key(&self, about: &str) -> String {
        format!("{about}-{}", self.keys.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn url(&self) -> String {
        self.url_by(self.address())
    }

    /// The same database by another way.
    pub(crate) fn url_by(&self, address: SocketAddr) -> String {
        self.url_as(self.server.get_user().unwrap_or("postgres"), address)
    }

    pub(crate) fn url_as(&self, user: &str, address: SocketAddr) -> String {
        format!("postgres://{user}@{address}/{}", self.name)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let port = self.server.get_ports().first().copied().unwrap_or(5432);
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    pub(crate) async fn client(&self) -> Client {
        let mut config = self.server.clone();
        connect(config.dbname(&self.name)).await
    }

    pub(crate) async fn run(&self, text: &str) {
        self.client().await.batch_execute(text).await.unwrap();
    }

    pub(crate) async fn number(&self, text: &str) -> i64 {
        self.client().await.query_one(text, &[]).await.unwrap().get(0)
    }

    /// How often an effect happened.
    pub(crate) async fn effects(&self, name: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM effects WHERE name = '{name}'")).await
    }

    /// Lets the database's clock be so many seconds ahead of what it was.
    pub(crate) async fn step_clock(&self, seconds: i64) {
        let micros = seconds * 1_000_000;
        let offset = self.clock_offset.fetch_add(micros, Ordering::SeqCst) + micros;
        self.run(&format!(
            "CREATE OR REPLACE FUNCTION hapax.clock() RETURNS bigint LANGUAGE sql VOLATILE AS \
             'SELECT (date_part(''epoch'', clock_timestamp()) * 1000000)::bigint + {offset}'"
        ))
        .await;
    }
}

impl Drop for World {
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

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.expect("the test server must answer");
    tokio::spawn(connection);
    client
}

fn server() -> Config {
    let url = service("postgres").expect("no PostgreSQL server: run `cargo xtask services up`");
    url.parse().expect("the server's URL must be one")
}

/// Where one of the servers is, if it runs.
pub(crate) fn service(name: &str) -> Option<String> {
    let variable = format!("HAPAX_{}_URL", name.to_uppercase());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../.services/{name}.url"));
    let url = env::var(variable).or_else(|_| fs::read_to_string(path)).ok()?;
    Some(url.trim().to_owned())
}

/// `once` of the key, with this work.
pub(crate) fn once(key: &str, work: &Value) -> Value {
    json!({
        "do": "once", "tenant": "shop", "scope": "POST /payments", "key": key, "request": "{\"cents\":100}",
        "method": "POST", "path": "/payments", "query": "", "work": work,
    })
}

/// A command with other members.
pub(crate) fn with(mut command: Value, members: &Value) -> Value {
    let more = members.as_object().unwrap().clone();
    command.as_object_mut().unwrap().extend(more);
    command
}

/// Work that writes this effect and says that it is paid.
pub(crate) fn pay(effect: &str) -> Value {
    json!({ "write": effect, "answer": paid() })
}

pub(crate) fn paid() -> Value {
    json!({ "status": 201, "headers": { "x-paid": "yes" }, "body": "paid \u{e9} \u{1f600}\n" })
}

/// What is told if it was paid.
pub(crate) fn told(answer: &Value, replayed: bool) -> Value {
    let mut answer = answer.clone();
    answer["replayed"] = replayed.into();
    json!({ "answer": answer })
}

/// The kind of the error that was told.
pub(crate) fn kind(heard: &Value) -> &str {
    heard["error"]["kind"].as_str().unwrap_or_else(|| panic!("no error: {heard}"))
}
