//! Each way, set up on a database of its own.

use deadpool_postgres::{Manager, Object, Pool};
use hapax::{
    AttemptAnswer, Body, Key, KeyLook, Operation, Outcome, RequestParts, Scope, Tenant,
    TransactionOptions, Transactional,
    postgres::{Store, transaction::deadpool::Database},
};
use tokio_postgres::{Config, NoTls};

use super::way::TransactionWay;
use crate::{
    arms::{
        Arm, EffectCounter, StoredCount,
        postgres_baseline::{CLAIM, SCHEMA, SETTLE},
    },
    error::BenchError,
    request::{self, SCOPE, TENANT},
};

/// The largest pool: what a service has, however many ask at the same time.
const CONNECTIONS_MAX: usize = 64;

const BUSINESS: &str = "CREATE TABLE payments (id bigserial PRIMARY KEY, reference text NOT NULL, cents bigint NOT NULL)";
const INSERT: &str = "INSERT INTO payments (reference, cents) VALUES ($1, $2)";

const BEGIN: &str =
    "SELECT decision, operation::text, fence FROM hapax.begin_bytes($1, $2, $3, $4)";
const FINISH: &str = "SELECT hapax.finish($1::text::uuid, $2, 201, '{}', $3::bytea)";
const RECORD: &str = "SELECT hapax.record($1, $2, $3, $4::bytea, 201, '{}', $5::bytea)::text";
const MANUAL: &str = include_str!("../../../../docs/sql.md");

/// The statement as the manual prints it.
fn statement() -> &'static str {
    let printed =
        MANUAL.split("PREPARE record_operation (text, text, text, bytea, integer, bytea) AS");
    printed.last().and_then(|rest| rest.split("\n```").next()).unwrap_or_default()
}

pub(super) struct TxArm {
    way: TransactionWay,
    pool: Pool,
    hapax: Transactional<Database>,
    answer: Vec<u8>,
    effects: EffectCounter,
}

impl TxArm {
    pub(super) async fn connect(
        config: &Config,
        way: TransactionWay,
        callers: usize,
    ) -> Result<Self, BenchError> {
        Store::migrate(config).await?;
        let pool = Pool::builder(Manager::new(config.clone(), NoTls));
        let pool = pool.max_size(callers.clamp(1, CONNECTIONS_MAX)).build();
        let pool = pool.map_err(|_| BenchError::PoolEmpty)?;
        let client = pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        client.batch_execute(BUSINESS).await?;
        client.batch_execute(SCHEMA).await?;
        let look = match way {
            TransactionWay::LookAtEnd => KeyLook::AtEnd,
            TransactionWay::Bare
            | TransactionWay::LookAtBegin
            | TransactionWay::Functions
            | TransactionWay::Record
            | TransactionWay::Statement
            | TransactionWay::TwoCommits => KeyLook::AtBegin,
        };
        let options = TransactionOptions { look, ..TransactionOptions::default() };
        let hapax = Transactional::new(Database::new(pool.clone()), options);
        let answer = request::answer();
        Ok(Self { way, pool, hapax, answer, effects: EffectCounter::default() })
    }

    async fn connection(&self) -> Result<Object, BenchError> {
        self.pool.get().await.map_err(|_| BenchError::PoolEmpty)
    }

    async fn bare(&self, number: u64) -> Result<(), BenchError> {
        let mut client = self.connection().await?;
        let transaction = client.transaction().await?;
        let insert = transaction.prepare_cached(INSERT).await?;
        transaction.execute(&insert, &[&request::key(number), &cents(number)]).await?;
        Ok(transaction.commit().await?)
    }

    async fn recorded(&self, number: u64) -> Result<(), BenchError> {
        let client = self.connection().await?;
        let text = if self.way == TransactionWay::Record { RECORD } else { statement() };
        let (insert, record) =
            (client.prepare_cached(INSERT).await?, client.prepare_cached(text).await?);
        client.batch_execute("BEGIN").await?;
        let (key, body) = (request::key(number), request::body(number));
        client.execute(&insert, &[&key, &cents(number)]).await?;
        let (body, status) = (body.as_bytes(), 201_i32);
        let mut params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            vec![&TENANT, &SCOPE, &key, &body];
        if self.way == TransactionWay::Statement {
            params.push(&status);
        }
        params.push(&self.answer);
        let (recorded, committed) =
            tokio::join!(client.execute(&record, &params), client.batch_execute("COMMIT"));
        recorded?;
        Ok(committed?)
    }

    async fn once(&self, number: u64) -> Result<(), BenchError> {
        let operation = Operation::new(
            Tenant::parse(TENANT)?,
            Scope::parse(SCOPE)?,
            Key::parse(request::key(number))?,
        );
        let body = request::body(number);
        let request = RequestParts { body: body.as_bytes(), ..RequestParts::default() };
        let answer = bytes::Bytes::copy_from_slice(&self.answer);
        let answered = self.hapax.once(operation, &request, move |tx| {
            let answer = answer.clone();
            async move {
                let insert = tx.prepare_cached(INSERT).await?;
                tx.execute(&insert, &[&request::key(number), &cents(number)]).await?;
                let outcome = Outcome::new(201, Vec::new(), Body::Kept(answer))?;
                Ok::<_, BenchError>(AttemptAnswer::completed(outcome))
            }
        });
        answered.await.map_err(|error| BenchError::Once(Box::new(error)))?;
        Ok(())
    }

    async fn functions(&self, number: u64) -> Result<(), BenchError> {
        let client = self.connection().await?;
        let (begin, insert, finish) = (
            client.prepare_cached(BEGIN).await?,
            client.prepare_cached(INSERT).await?,
            client.prepare_cached(FINISH).await?,
        );
        let (key, body) = (request::key(number), request::body(number));
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&TENANT, &SCOPE, &key, &body.as_bytes()];
        let (opened, begun) =
            tokio::join!(client.batch_execute("BEGIN"), client.query_one(&begin, &params));
        opened?;
        let begun = begun?;
        if begun.try_get::<_, &str>(0)? != "execute" {
            return Err(BenchError::NotFresh { found: "another decision" });
        }
        let (operation, fence): (&str, i64) = (begun.try_get(1)?, begun.try_get(2)?);
        client.execute(&insert, &[&key, &cents(number)]).await?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&operation, &fence, &self.answer];
        let (finished, committed) =
            tokio::join!(client.execute(&finish, &params), client.batch_execute("COMMIT"));
        finished?;
        Ok(committed?)
    }

    async fn two_commits(&self, number: u64) -> Result<(), BenchError> {
        let mut client = self.connection().await?;
        let key = request::key(number);
        let claim = client.prepare_cached(CLAIM).await?;
        if client.query(&claim, &[&key, &request::hash(number)]).await?.is_empty() {
            return Err(BenchError::NotFresh { found: "a row" });
        }
        let transaction = client.transaction().await?;
        let insert = transaction.prepare_cached(INSERT).await?;
        transaction.execute(&insert, &[&key, &cents(number)]).await?;
        let settle = transaction.prepare_cached(SETTLE).await?;
        transaction.execute(&settle, &[&key, &self.answer]).await?;
        Ok(transaction.commit().await?)
    }
}

fn cents(number: u64) -> i64 {
    i64::try_from(number % 100_000).unwrap_or(0)
}

impl Arm for TxArm {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        match self.way {
            TransactionWay::Bare => self.bare(number).await?,
            TransactionWay::LookAtBegin | TransactionWay::LookAtEnd => self.once(number).await?,
            TransactionWay::Functions => self.functions(number).await?,
            TransactionWay::Record | TransactionWay::Statement => self.recorded(number).await?,
            TransactionWay::TwoCommits => self.two_commits(number).await?,
        }
        self.effects.happened();
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    /// Payments whose key is completed; a payment without one, or a key without a payment, is other.
    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let keys = match self.way {
            TransactionWay::Bare => "SELECT reference AS key FROM payments",
            TransactionWay::LookAtBegin
            | TransactionWay::LookAtEnd
            | TransactionWay::Functions
            | TransactionWay::Record
            | TransactionWay::Statement => "SELECT key FROM hapax.operations WHERE state = 3",
            TransactionWay::TwoCommits => "SELECT key FROM requests WHERE state = 'completed'",
        };
        let count = format!(
            "SELECT count(*) FILTER (WHERE p.reference = k.key), \
             count(*) FILTER (WHERE p.reference IS NULL OR k.key IS NULL) \
             FROM payments AS p FULL JOIN ({keys}) AS k ON k.key = p.reference"
        );
        let row = self.connection().await?.query_one(&count, &[]).await?;
        let (completed, others): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(StoredCount { completed: count(completed), others: count(others) })
    }
}
