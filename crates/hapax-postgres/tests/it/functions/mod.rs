//! The functions in schema `hapax`, as a service in any language calls them.

mod arguments;
mod catalogue;
mod concurrency;
mod decisions;
mod deliveries;
mod events;
mod formats;
mod isolation;
mod order;
mod outcomes;
pub(crate) mod pooled;
mod recording;
mod retention;
pub(crate) mod rights;
mod tenants;
mod traps;
mod values;

use hapax_core::{Key, Operation, OperationId, Record, Scope, Store as _, Tenant};
use hapax_postgres::Store;
use tokio::task::yield_now;
use tokio_postgres::{Client, Error, Row};

pub(crate) use self::pooled::pool;
use crate::backend::{Postgres, connect};

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// What `hapax.begin` answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) decision: String,
    operation: String,
    fence: Option<i64>,
    status: Option<i32>,
    headers: Option<String>,
    body: Option<Vec<u8>>,
    retry_after: Option<i32>,
    differs: Option<Vec<String>>,
    expires_at: Option<i64>,
}

/// What came back instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    message: String,
    pub(crate) hint: Option<String>,
}

/// A connection of a service with a table of its own.
pub(crate) struct Service {
    pub(crate) client: Client,
}

/// A database with our schema and a table `payments (key, amount)`.
pub(crate) async fn shop() -> (Postgres, Store) {
    let database = Postgres::migrated().await;
    let store = database.store().await;
    let table = "CREATE TABLE payments (key text NOT NULL, amount integer NOT NULL)";
    database.client().await.batch_execute(table).await.unwrap();
    (database, store)
}

impl Service {
    pub(crate) async fn new(database: &Postgres) -> Self {
        Self { client: connect(&database.config()).await }
    }

    /// Statements that must succeed.
    pub(crate) async fn run(&self, text: &str) {
        let ran = self.client.batch_execute(text).await;
        assert!(ran.is_ok(), "{text}: {:?}", ran.map_err(Refusal::from));
    }

    /// Statements that must be refused.
    pub(crate) async fn refused(&self, text: &str) -> Refusal {
        let refused = self.client.batch_execute(text).await;
        Refusal::from(refused.expect_err(&format!("{text} must be refused")))
    }

    async fn open(&self, level: &str) {
        self.run(&format!("BEGIN ISOLATION LEVEL {level}")).await;
    }

    /// `hapax.begin` with these arguments.
    pub(crate) async fn ask(&self, arguments: &str) -> Result<Begun, Refusal> {
        let text = format!(
            "SELECT decision, operation::text, fence, status, headers::text, body, retry_after, differs, \
             (extract(epoch FROM expires_at) * 1000000)::int8 FROM hapax.begin({arguments})"
        );
        let row = self.client.query_typed(&text, &[]).await;
        row.map(|rows| Begun::from(&rows[0])).map_err(Refusal::from)
    }

    /// `hapax.begin` of this key, which must be answered.
    async fn begin(&self, key: &str) -> Begun {
        self.ask(&arguments(key)).await.unwrap()
    }

    /// Begins, pays and finishes; `false` if it was replayed.
    pub(crate) async fn pay(&self, key: &str) -> Result<bool, Refusal> {
        let begun = self.ask(&arguments(key)).await?;
        match begun.decision.as_str() {
            "execute" => {
                let work = format!(
                    "INSERT INTO payments VALUES ('{key}', 100); SELECT {}",
                    begun.finish("201, '{\"content-type\": \"text/plain\"}', 'paid'")
                );
                self.client.batch_execute(&work).await?;
                Ok(true)
            }
            "replay" => {
                assert_eq!((begun.status, begun.body.as_deref()), (Some(201), Some(&b"paid"[..])));
                Ok(false)
            }
            other => unreachable!("{key} must be executed or replayed, not {other}"),
        }
    }

    /// The single number a query answers with.
    pub(crate) async fn number(&self, text: &str) -> i64 {
        self.client.query_typed(text, &[]).await.unwrap()[0].get(0)
    }

    /// Returns once so many sessions of this database wait for a lock.
    pub(crate) async fn until_waiting(&self, sessions: i64) {
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while self.number(waiting).await < sessions {
            yield_now().await;
        }
    }
}

impl Begun {
    /// The call that ends it well, with these further arguments.
    pub(crate) fn finish(&self, rest: &str) -> String {
        self.end("finish", rest)
    }

    /// The call that ends it with a terminal error, with these further arguments.
    fn fail(&self, rest: &str) -> String {
        self.end("fail", rest)
    }

    fn end(&self, function: &str, rest: &str) -> String {
        let comma = if rest.is_empty() { "" } else { ", " };
        format!("hapax.{function}('{}', {}{comma}{rest})", self.operation, self.fence.unwrap())
    }
}

impl From<&Row> for Begun {
    fn from(row: &Row) -> Self {
        Self {
            decision: row.get(0),
            operation: row.get(1),
            fence: row.get(2),
            status: row.get(3),
            headers: row.get(4),
            body: row.get(5),
            retry_after: row.get(6),
            differs: row.get(7),
            expires_at: row.get(8),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let refusal = error.as_db_error().expect("the server must have refused it itself");
        Self {
            code: refusal.code().code().to_owned(),
            message: refusal.message().to_owned(),
            hint: refusal.hint().map(str::to_owned),
        }
    }
}

/// The arguments of `hapax.begin` for this key: patient, because the machine may be busy.
fn arguments(key: &str) -> String {
    format!("'acme', 'POST /pay', '{key}', '{{\"amount\": 100}}', wait => '60 seconds'")
}

fn operation(key: &str) -> Operation {
    named("acme", "POST /pay", key)
}

fn named(tenant: &str, scope: &str, key: &str) -> Operation {
    let (tenant, scope) = (Tenant::parse(tenant).unwrap(), Scope::parse(scope).unwrap());
    Operation::new(tenant, scope, Key::parse(key).unwrap())
}

/// What the store holds under the id.
async fn record(store: &Store, id: OperationId) -> Option<Record> {
    store.load(vec![id]).await.remove(0).unwrap().record.map(|record| *record)
}
