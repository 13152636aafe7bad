//! A database with a table of payments, and somebody who pays.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{AnswerMeaning, AttemptAnswer, Body, Event, Outcome, RequestParts};
use hapax_engine::transactional::{
    Answered, Fate, InTransactionError, TransactionOptions, Transactional, Tx,
};
use hapax_postgres::{
    Store,
    transaction::{ForOperation, Isolation},
};

use tokio_postgres::Config;

use super::doors::{BoxError, Door};
use crate::{backend::Postgres, reference::operation};

/// A world: a database with our schema and a business table, and one driver.
pub(crate) struct World<D: Door> {
    pub(crate) postgres: Postgres,
    pub(crate) store: Store,
    pub(crate) hapax: Transactional<D::Database>,
    /// How often work was called.
    pub(crate) calls: Arc<AtomicU32>,
}

impl<D: Door> World<D> {
    pub(crate) async fn new() -> Self {
        Self::with(TransactionOptions::default(), None).await
    }

    pub(crate) async fn with(options: TransactionOptions, isolation: Option<Isolation>) -> Self {
        Self::on(Postgres::migrated().await, options, isolation).await
    }

    pub(crate) async fn on(
        postgres: Postgres,
        options: TransactionOptions,
        isolation: Option<Isolation>,
    ) -> Self {
        let store = postgres.store().await;
        let client = postgres.client().await;
        client.batch_execute("CREATE TABLE payments (key text NOT NULL)").await.unwrap();
        let hapax = Transactional::new(D::open(&postgres.config(), isolation), options);
        Self { postgres, store, hapax, calls: Arc::default() }
    }

    /// The same with connections of another address.
    pub(crate) fn through(self, config: &Config, isolation: Option<Isolation>) -> Self {
        let options = *self.hapax.options();
        Self { hapax: Transactional::new(D::open(config, isolation), options), ..self }
    }

    /// Pays under this key, and answers with this status.
    pub(crate) async fn pay(&self, key: &str, status: u16) -> Result<Answered, InTransactionError> {
        self.run(key, move |mut tx, key| async move {
            pay::<D>(&mut tx, &key).await?;
            Ok(answer(status))
        })
        .await
    }

    /// Runs this work under this key.
    pub(crate) async fn run<F>(
        &self,
        key: &str,
        work: impl Fn(Tx<D::Transaction<ForOperation>>, String) -> F + Send + 'static,
    ) -> Result<Answered, InTransactionError>
    where
        F: Future<Output = Result<AttemptAnswer, BoxError>> + Send + 'static,
    {
        let (calls, named) = (Arc::clone(&self.calls), key.to_owned());
        let work = move |tx| {
            calls.fetch_add(1, Ordering::SeqCst);
            work(tx, named.clone())
        };
        self.hapax.once(operation(key), &request(), work).await
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) async fn payments(&self) -> i64 {
        self.postgres.number("SELECT count(*) FROM payments").await
    }

    pub(crate) async fn events(&self) -> i64 {
        self.postgres.number("SELECT count(*) FROM hapax.outbox").await
    }

    pub(crate) async fn records(&self) -> i64 {
        self.postgres.number("SELECT count(*) FROM hapax.operations").await
    }
}

/// Inserts a payment and says so in an event.
pub(crate) async fn pay<D: Door>(
    tx: &mut D::Transaction<ForOperation>,
    key: &str,
) -> Result<(), BoxError> {
    D::write(tx, format!("INSERT INTO payments (key) VALUES ('{key}')")).await?;
    D::emit(tx, Event::new("payment.completed", key, format!("{{\"key\":\"{key}\"}}")).unwrap());
    Ok(())
}

pub(crate) fn request() -> RequestParts<'static> {
    RequestParts { body: b"{\"amount\":100}", ..RequestParts::default() }
}

pub(crate) fn outcome(status: u16) -> Outcome {
    Outcome::new(status, Vec::new(), Body::Kept(Bytes::from_static(b"{\"ok\":true}"))).unwrap()
}

/// An answer of the payer, and what it means by that.
pub(crate) fn answer(status: u16) -> AttemptAnswer {
    let meaning = match status {
        ..400 => AnswerMeaning::Completed,
        429 => AnswerMeaning::NotDone,
        400..500 => AnswerMeaning::Failed,
        500.. => AnswerMeaning::TakenForNotDone,
    };
    AttemptAnswer { outcome: outcome(status), meaning }
}

pub(crate) fn options() -> TransactionOptions {
    TransactionOptions { wait: Duration::from_secs(20), ..TransactionOptions::default() }
}

/// It was run now, and stored.
pub(crate) fn is_stored(answered: &Result<Answered, InTransactionError>) -> bool {
    matches!(answered, Ok(Answered { fate: Fate::Stored { .. }, .. }))
}

/// It was run before, and the answer is the same.
pub(crate) fn is_replayed(answered: &Result<Answered, InTransactionError>) -> bool {
    matches!(answered, Ok(Answered { fate: Fate::Replayed { .. }, .. }))
}

/// Waits until somebody waits for an advisory lock.
pub(crate) async fn somebody_waits<D: Door>(world: &World<D>) {
    let waiting = "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database \
                   WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted";
    while world.postgres.number(waiting).await == 0 {
        tokio::task::yield_now().await;
    }
}
