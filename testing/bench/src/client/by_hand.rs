//! The journal most people would write: one connection behind a lock, one transaction per write.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use hapax::client::journal::{Journal, JournalOptions};
use rusqlite::{Connection, params};
use tokio::{sync::Mutex, task::spawn_blocking};

use super::error::CallBenchError;
use crate::{BenchError, arms::StoredCount, request};

/// A journal in the same tables as the client's, and as durable.
pub(super) struct ByHand {
    connection: Arc<Mutex<Connection>>,
    answer: Arc<[u8]>,
    sync: Duration,
    commits: AtomicU64,
}

const SETTINGS: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 2000;
    PRAGMA journal_size_limit = 67108864;
";
/// Columns as wide as the client's. What it computes to find damage is given here for nothing.
const BEGIN: &str = "
    INSERT INTO hapax_calls (
        name, format, state, fence, owner, lease_us, attempts, created_at, created_boot, sent_at,
        sent_boot, noted_at, noted_boot, left_us, key, method, url, headers, withheld, digest, seal,
        body
    ) VALUES (
        ?1, 1, 1, 1, 7, 10000000, 0, unixepoch() * 1000000, zeroblob(24), unixepoch() * 1000000,
        zeroblob(24), unixepoch() * 1000000, zeroblob(24), 60000000, ?2, 'POST', ?3,
        CAST('content-type: application/json' AS BLOB), '', zeroblob(32), zeroblob(32), ?4
    )";
const END: &str = "
    UPDATE hapax_calls SET
        state = 2, lease_us = NULL, attempts = 1, noted_at = unixepoch() * 1000000,
        ended_at = unixepoch() * 1000000, ended_boot = zeroblob(24), answer_head = zeroblob(48),
        answer_digest = zeroblob(32), answer_body = ?2
    WHERE name = ?1 AND state = 1";
const COUNT: &str = "SELECT count(*) FILTER (WHERE state = 2 AND answer_body IS NOT NULL), \
                     count(*) FROM hapax_calls";

impl ByHand {
    pub(super) fn open(path: &Path, sync: Duration) -> Result<Self, BenchError> {
        // The client's own tables, made by the client.
        drop(Journal::open(path, JournalOptions::default()).map_err(CallBenchError::Open)?);
        let connection = Connection::open(path)?;
        connection.execute_batch(SETTINGS)?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
            answer: request::answer().into(),
            sync,
            commits: AtomicU64::new(0),
        })
    }

    /// Writes down what is about to be sent.
    pub(super) async fn begin(&self, number: u64, url: &str) -> Result<(), BenchError> {
        let (name, key, url) = (name(number), request::key(number), url.to_owned());
        let body = request::body(number);
        self.write(move |connection| {
            let mut insert = connection.prepare_cached(BEGIN)?;
            insert.execute(params![name, key, url, body.as_bytes()])
        })
        .await
    }

    /// Writes down what was answered.
    pub(super) async fn end(&self, number: u64) -> Result<(), BenchError> {
        let (name, answer) = (name(number), Arc::clone(&self.answer));
        self.write(move |connection| {
            connection.prepare_cached(END)?.execute(params![name, &*answer])
        })
        .await
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Relaxed)
    }

    /// Waits for the lock without holding a thread, then works on a thread that may block.
    async fn write(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<usize> + Send + 'static,
    ) -> Result<(), BenchError> {
        let (connection, sync) = (Arc::clone(&self.connection).lock_owned().await, self.sync);
        let rows = spawn_blocking(move || {
            if sync > Duration::ZERO {
                thread::sleep(sync);
            }
            work(&connection)
        });
        if rows.await?? != 1 {
            return Err(CallBenchError::Lost.into());
        }
        self.commits.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// What operations are called, in both journals.
pub(super) fn name(number: u64) -> String {
    format!("payment-{number:020}")
}

/// Which operations ended with an answer, and which did not, in either journal.
pub(super) fn stored(path: &Path) -> Result<StoredCount, BenchError> {
    let connection = Connection::open(path)?;
    let counted =
        connection.query_row(COUNT, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
    let (completed, all) = counted?;
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(StoredCount { completed: count(completed), others: count(all - completed) })
}
