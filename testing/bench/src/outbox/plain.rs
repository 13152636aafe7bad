//! The usual hand-written outboxes: a table, and a loop that reads it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::sleep;
use tokio_postgres::{Client, Config, Statement};

use super::event::{ArrivalChecker, PAYLOAD_SQL, PER_KEY};
use crate::{arms::postgres_baseline::connect, error::BenchError};

/// Rows that are read at once.
const BATCH: i64 = 500;
/// The pause of a loop that found nothing.
const POLL: Duration = Duration::from_millis(5);

const TABLE: &str = "CREATE TABLE plain (
    id bigserial PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    topic text NOT NULL,
    key text NOT NULL,
    content_type text NOT NULL DEFAULT 'application/json',
    headers jsonb NOT NULL DEFAULT '{}',
    payload bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    done_at timestamptz
);
CREATE TABLE cursor (xid xid8 NOT NULL, id bigint NOT NULL);
INSERT INTO cursor VALUES ('0', 0);";
const MARK_INDEX: &str = "CREATE INDEX ON plain (id) WHERE done_at IS NULL";
const CURSOR_INDEX: &str = "CREATE INDEX ON plain (xid, id)";
const NOTIFY: &str = "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_notify('plain', ''); RETURN NULL; END $$;
CREATE TRIGGER tell AFTER INSERT ON plain FOR EACH ROW EXECUTE FUNCTION tell();";

pub(super) const INSERT: &str = "INSERT INTO plain (topic, key, payload) VALUES ('orders', $1, $2)";

const LOCKED: &str = "SELECT id, payload FROM plain WHERE done_at IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED";
const DELETE: &str = "DELETE FROM plain WHERE id = ANY($1)";
const MARK: &str = "UPDATE plain SET done_at = now() WHERE id = ANY($1)";
const AFTER: &str = "SELECT p.id, p.payload, p.xid::text FROM plain AS p, cursor AS c
    WHERE (p.xid, p.id) > (c.xid, c.id) AND p.xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY p.xid, p.id LIMIT $1";
const MOVE: &str = "UPDATE cursor SET xid = ($1::text)::xid8, id = $2";

/// How a loop remembers what it has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// It deletes rows.
    Delete,
    /// It marks rows as done.
    Mark,
    /// It remembers the transaction and the row it came to, and reads below the oldest open transaction.
    Cursor,
}

/// Makes the table.
pub(super) async fn prepare(config: &Config, plain: Plain, notify: bool) -> Result<(), BenchError> {
    let client = connect(config).await?;
    client.batch_execute(TABLE).await?;
    match plain {
        Plain::Delete => {}
        Plain::Mark => client.batch_execute(MARK_INDEX).await?,
        Plain::Cursor => client.batch_execute(CURSOR_INDEX).await?,
    }
    if notify {
        client.batch_execute(NOTIFY).await?;
    }
    Ok(())
}

/// Fills the table, in transactions of a thousand.
pub(super) async fn fill(config: &Config, events: u64) -> Result<(), BenchError> {
    let insert = format!(
        "INSERT INTO plain (topic, key, payload) SELECT 'orders', key::text, {PAYLOAD_SQL} FROM {}",
        numbers(events)
    );
    fill_with(config, &insert, events).await
}

/// Runs a statement with a range of numbers, a thousand at a time.
pub(super) async fn fill_with(config: &Config, text: &str, events: u64) -> Result<(), BenchError> {
    let client = connect(config).await?;
    let statement = client.prepare(text).await?;
    let mut from: i64 = 0;
    let events = i64::try_from(events).unwrap_or(i64::MAX);
    while from < events {
        let until = (from + 1000).min(events);
        client.execute(&statement, &[&from, &until]).await?;
        from = until;
    }
    client.batch_execute("VACUUM ANALYZE").await?;
    Ok(())
}

/// Keys and turns of a range of events: a key's events lie far apart, as they do in life.
pub(super) fn numbers(events: u64) -> String {
    let keys = events.div_ceil(PER_KEY);
    format!(
        "(SELECT n % {keys} AS key, n / {keys} AS turn FROM generate_series($1::bigint, $2::bigint - 1) AS n) AS e"
    )
}

/// A loop over the table.
pub(super) struct PlainLoop {
    client: Client,
    plain: Plain,
    read: Statement,
    finish: Statement,
}

impl PlainLoop {
    pub(super) async fn new(config: &Config, plain: Plain) -> Result<Self, BenchError> {
        let client = connect(config).await?;
        let (read, finish) = match plain {
            Plain::Delete => (LOCKED, DELETE),
            Plain::Mark => (LOCKED, MARK),
            Plain::Cursor => (AFTER, MOVE),
        };
        let (read, finish) = (client.prepare(read).await?, client.prepare(finish).await?);
        Ok(Self { client, plain, read, finish })
    }

    /// Sends what is there to the checker; whether there was anything.
    async fn once(&mut self, checker: &ArrivalChecker) -> Result<bool, BenchError> {
        let transaction = self.client.transaction().await?;
        let rows = transaction.query(&self.read, &[&BATCH]).await?;
        let Some(last) = rows.last() else { return Ok(false) };
        let payloads: Vec<&[u8]> = rows.iter().map(|row| row.get(1)).collect();
        checker.take(payloads);
        match self.plain {
            Plain::Delete | Plain::Mark => {
                let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
                transaction.execute(&self.finish, &[&ids]).await?;
            }
            Plain::Cursor => {
                let (xid, id): (String, i64) = (last.get(2), last.get(0));
                transaction.execute(&self.finish, &[&xid, &id]).await?;
            }
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Sends until told to stop, and never leaves between sending and noting it.
    pub(super) async fn run(
        mut self,
        checker: Arc<ArrivalChecker>,
        stop: Arc<AtomicBool>,
    ) -> Result<(), BenchError> {
        while !stop.load(Relaxed) {
            if !self.once(&checker).await? {
                sleep(POLL).await;
            }
        }
        Ok(())
    }
}
