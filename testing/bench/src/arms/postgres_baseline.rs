//! The usual hand-written way on PostgreSQL: a pool of connections, each write its own commit.
//!
//! The table holds what it must to do the same work: a hash that tells requests apart, and an
//! indexed expiry, without which nothing could ever be deleted.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::{Arm, EffectCounter, StoredCount};
use crate::{
    args::Statements,
    error::BenchError,
    request::{self, SCOPE, TENANT},
};

const CONNECTIONS: usize = 20;

pub(crate) const SCHEMA: &str = "CREATE TABLE requests (
    key text PRIMARY KEY,
    request_hash bigint NOT NULL,
    state text NOT NULL,
    response bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL DEFAULT now() + interval '1 day'
);
CREATE INDEX ON requests (expires_at)";
pub(crate) const CLAIM: &str = "INSERT INTO requests (key, request_hash, state) VALUES ($1, $2, 'running') \
                     ON CONFLICT (key) DO NOTHING RETURNING key";
pub(crate) const SETTLE: &str =
    "UPDATE requests SET state = 'completed', response = $2 WHERE key = $1";
const COUNT: &str = "SELECT count(*) FILTER (WHERE state = 'completed' AND response IS NOT NULL), \
                     count(*) FROM requests";

pub(crate) struct PostgresBaseline {
    free: Semaphore,
    pool: Mutex<Vec<BaselineSession>>,
    answer: Vec<u8>,
    effects: EffectCounter,
}

struct BaselineSession {
    client: Client,
    /// The claim and the settle, where they are prepared once.
    prepared: Option<(Statement, Statement)>,
}

impl BaselineSession {
    async fn claim(&self, key: &str, hash: i64) -> Result<bool, tokio_postgres::Error> {
        let rows = match &self.prepared {
            Some((claim, _)) => self.client.query(claim, &[&key, &hash]).await?,
            None => self.client.query(CLAIM, &[&key, &hash]).await?,
        };
        Ok(!rows.is_empty())
    }

    async fn settle(&self, key: &str, answer: &[u8]) -> Result<u64, tokio_postgres::Error> {
        match &self.prepared {
            Some((_, settle)) => self.client.execute(settle, &[&key, &answer]).await,
            None => self.client.execute(SETTLE, &[&key, &answer]).await,
        }
    }
}

impl PostgresBaseline {
    pub(crate) async fn connect(
        config: &Config,
        statements: Statements,
        answer_bytes: usize,
    ) -> Result<Self, BenchError> {
        connect(config).await?.batch_execute(SCHEMA).await?;
        let mut pool = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let client = connect(config).await?;
            let prepared = match statements {
                Statements::Prepared => {
                    Some((client.prepare(CLAIM).await?, client.prepare(SETTLE).await?))
                }
                Statements::Text => None,
            };
            pool.push(BaselineSession { client, prepared });
        }
        Ok(Self {
            free: Semaphore::new(CONNECTIONS),
            pool: Mutex::new(pool),
            answer: request::answer_of(answer_bytes),
            effects: EffectCounter::default(),
        })
    }

    /// Does `work` on a connection of the pool, and gives the connection back.
    async fn with<T>(
        &self,
        work: impl AsyncFnOnce(&BaselineSession) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, BenchError> {
        let _permit = self.free.acquire().await;
        let taken = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(session) = taken else { return Err(BenchError::PoolEmpty) };
        let done = work(&session).await;
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        Ok(done?)
    }
}

impl Arm for PostgresBaseline {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        let key = format!("{TENANT}/{SCOPE}/{}", request::key(number));
        let hash = request::hash(number);
        if !self.with(async |session| session.claim(&key, hash).await).await? {
            return Err(BenchError::NotFresh { found: "a row" });
        }
        self.effects.happened();
        self.with(async |session| session.settle(&key, &self.answer).await).await?;
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let counted = self.with(async |session| session.client.query_one(COUNT, &[]).await).await?;
        let (completed, all): (i64, i64) = (counted.try_get(0)?, counted.try_get(1)?);
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(StoredCount { completed: count(completed), others: count(all - completed) })
    }
}

/// Opens a connection and moves its bytes until it is dropped.
pub(crate) async fn connect(config: &Config) -> Result<Client, BenchError> {
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
