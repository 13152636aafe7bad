//! The usual hand-written way on SQLite: one connection behind a lock, one transaction per write.
//!
//! The table holds what it must to do the same work: a hash that tells requests apart, and an
//! indexed expiry, without which nothing could ever be deleted.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;
use tokio::{sync::Mutex, task::spawn_blocking};

use super::{Arm, EffectCounter, StoredCount};
use crate::{
    error::BenchError,
    request::{self, SCOPE, TENANT},
};

pub(crate) struct SqliteBaseline {
    connection: Arc<Mutex<Connection>>,
    answer: Arc<[u8]>,
    effects: EffectCounter,
}

/// As durable as our store, with the same room for pages and the same rhythm of checkpoints.
const SETTINGS: &str = "
    PRAGMA page_size = 4096;
    PRAGMA cache_size = -65536;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 8000;
    CREATE TABLE requests (
        key TEXT PRIMARY KEY,
        request_hash INTEGER NOT NULL,
        state TEXT NOT NULL,
        response BLOB,
        created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        expires_at INTEGER NOT NULL DEFAULT (unixepoch() + 86400)
    );
    CREATE INDEX requests_expires_at ON requests (expires_at);
";
const CLAIM: &str = "INSERT INTO requests (key, request_hash, state) VALUES (?1, ?2, 'running') \
                     ON CONFLICT DO NOTHING RETURNING key";
const SETTLE: &str = "UPDATE requests SET state = 'completed', response = ?2 WHERE key = ?1";
const COUNT: &str = "SELECT count(*) FILTER (WHERE state = 'completed' AND response IS NOT NULL), \
                     count(*) FROM requests";

impl SqliteBaseline {
    pub(crate) fn open(path: &Path, answer_bytes: usize) -> Result<Self, BenchError> {
        let connection = Connection::open(path)?;
        connection.execute_batch(SETTINGS)?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
            answer: request::answer_of(answer_bytes).into(),
            effects: EffectCounter::default(),
        })
    }

    /// Waits for the lock without holding a thread, then works on a thread that may block.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BenchError> {
        let connection = Arc::clone(&self.connection).lock_owned().await;
        Ok(spawn_blocking(move || work(&connection)).await??)
    }
}

impl Arm for SqliteBaseline {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        let key: Arc<str> = format!("{TENANT}/{SCOPE}/{}", request::key(number)).into();
        let (own, hash) = (Arc::clone(&key), request::hash(number));
        let claimed = self.with(move |connection| {
            let mut claim = connection.prepare_cached(CLAIM)?;
            let mut rows = claim.query(rusqlite::params![&*own, hash])?;
            let claimed = rows.next()?.is_some();
            // Stepping to the end commits.
            while rows.next()?.is_some() {}
            Ok(claimed)
        });
        if !claimed.await? {
            return Err(BenchError::NotFresh { found: "a row" });
        }
        self.effects.happened();
        let answer = Arc::clone(&self.answer);
        let settled = self.with(move |connection| {
            connection.prepare_cached(SETTLE)?.execute(rusqlite::params![&*key, &*answer])
        });
        settled.await?;
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let count = |connection: &Connection| {
            connection
                .query_row(COUNT, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
        };
        let (completed, all) = self.with(count).await?;
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(StoredCount { completed: count(completed), others: count(all - completed) })
    }
}
