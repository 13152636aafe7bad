//! Same-transaction mode on a deadpool of tokio-postgres connections.

pub(crate) mod pooled_connection;

use std::{
    error::Error,
    fmt,
    ops::{Deref, DerefMut},
};

use deadpool_postgres::{Object, Pool};
use hapax_core::{
    Attempt, Event, Record, Salt, StoreError, TransactionError,
    outbox::Ringer,
    transaction::{self, End, Entered, Entrance, Granted},
};

use self::pooled_connection::{EndFailure, PooledConnection};
use super::{
    CANCEL, Isolation, SALT, UNDO, begin_statement,
    error::{CONFLICTS, TransactionFault},
    events::EmittedEvents,
    session::Session,
    unit::{self, LockName, TransactionPurpose, checked_salt, end_soon, enter_session},
};

/// The caller's pool, as a database that keeps a record in the caller's transaction.
///
/// ```
/// use deadpool_postgres::Pool;
/// use hapax_postgres::transaction::{Isolation, deadpool::Database};
///
/// fn database(pool: Pool) -> Database {
///     Database::new(pool).isolation(Isolation::Serializable)
/// }
/// ```
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) ringer: Option<Ringer>,
}

impl Database {
    /// Uses this pool. The schema must have been made: `hapax migrate`, or
    /// [`Store::migrate`](crate::Store::migrate).
    pub fn new(pool: Pool) -> Self {
        Self { pool, isolation: None, ringer: None }
    }

    /// The same with transactions of this isolation level.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> Self {
        Self { isolation: Some(isolation), ..self }
    }

    /// The same, ringing an outbox after each transaction that emitted something, so that its relays
    /// send at once.
    #[must_use]
    pub fn rings(self, ringer: Ringer) -> Self {
        Self { ringer: Some(ringer), ..self }
    }

    pub(crate) async fn connection(&self) -> Result<Object, TransactionError> {
        Ok(self.pool.get().await.map_err(StoreError::unavailable)?)
    }

    /// Cancels what runs in the transaction that holds this lock.
    pub(crate) async fn cancel(&self, lock: Option<LockName>) {
        if let Some(LockName { kind, name }) = lock
            && let Ok(connection) = self.connection().await
            && let Err(error) = connection.query(CANCEL, &[&kind, &name]).await
        {
            tracing::warn!(%error, "a statement that nobody waits for could not be cancelled");
        }
    }
}

/// A transaction on a connection of the pool: the connection itself, to be written through.
///
/// Dropped without an end, it closes its connection, and the server rolls it back.
///
/// ```
/// use hapax_core::Event;
/// use hapax_postgres::transaction::deadpool::Transaction;
///
/// async fn pay(tx: &mut Transaction) -> Result<(), Box<dyn std::error::Error>> {
///     tx.execute("INSERT INTO payments (cents) VALUES (100)", &[]).await?;
///     tx.emit(Event::new("payments.made", "order-17", "100")?);
///     Ok(())
/// }
/// ```
pub struct Transaction {
    pub(crate) line: Option<PooledConnection>,
    pub(crate) purpose: TransactionPurpose,
    pub(crate) events: EmittedEvents,
}

impl Transaction {
    /// Publishes this event if, and only if, the transaction commits.
    pub fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn line(&mut self) -> &mut PooledConnection {
        #[expect(clippy::expect_used, reason = "only ending consumes the transaction")]
        self.line.as_mut().expect("a transaction has its connection until it ends")
    }
}

impl Deref for Transaction {
    type Target = deadpool_postgres::ClientWrapper;

    fn deref(&self) -> &Self::Target {
        #[expect(clippy::expect_used, reason = "only ending consumes the transaction")]
        &self.line.as_ref().expect("a transaction has its connection until it ends").0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.line().0
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            line.close();
        }
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("isolation", &self.isolation).finish_non_exhaustive()
    }
}

impl transaction::Database for Database {
    type Transaction = Transaction;

    async fn salt(&self) -> Result<Salt, TransactionError> {
        let connection = self.connection().await?;
        let unusable = |error| StoreError::unavailable(crate::OpenError::Unusable(error));
        let row = connection.query_one(SALT, &[]).await.map_err(unusable)?;
        let (version, works_with) = (row.try_get(0), row.try_get(1));
        let (version, works_with) = (version.map_err(unusable)?, works_with.map_err(unusable)?);
        checked_salt(version, works_with, row.try_get(2).map_err(unusable)?)
    }

    async fn begin(&self, entrance: &Entrance) -> Result<Entered<Transaction>, TransactionError> {
        let mut line = PooledConnection(self.connection().await?);
        let entered = async {
            let first = line.open(begin_statement(self.isolation), entrance).await;
            let first = first.map_err(TransactionFault::before_commit)?;
            enter_session(&mut line, entrance, first).await
        };
        match entered.await {
            Ok(Ok(held)) => {
                let (attempt, expires_at) = (held.attempt, held.expires_at);
                let purpose = TransactionPurpose::Operation(held);
                let events = EmittedEvents::ringing(&self.ringer);
                let transaction = Transaction { line: Some(line), purpose, events };
                Ok(Entered::Execute(Granted { transaction, attempt, expires_at }))
            }
            Ok(Err(answer)) => {
                line.roll_back().await;
                Ok(Entered::Answer(answer))
            }
            Err(error) => {
                line.roll_back().await;
                Err(error)
            }
        }
    }

    async fn undo(&self, transaction: &mut Transaction) -> Result<(), TransactionError> {
        transaction.events.forget();
        transaction.line().run(UNDO).await.map_err(TransactionFault::before_commit)
    }

    async fn finish(
        &self,
        mut transaction: Transaction,
        end: &End,
    ) -> Result<(), TransactionError> {
        let Some(mut line) = transaction.line.take() else { return Ok(()) };
        match line.end(&mut transaction, end).await {
            Ok(()) => {
                transaction.events.committed();
                Ok(())
            }
            Err(EndFailure::BeforeCommit(fault)) => {
                line.roll_back().await;
                Err(fault.before_commit())
            }
            Err(EndFailure::InCommit(fault)) => {
                line.close();
                Err(fault.of_commit())
            }
        }
    }

    async fn roll_back(&self, mut transaction: Transaction) {
        if let Some(line) = transaction.line.take() {
            end_soon(line.roll_back(), self.cancel(transaction.purpose.lock())).await;
        }
    }

    async fn find_out(&self, attempt: &Attempt) -> Result<Option<Record>, TransactionError> {
        let mut line = PooledConnection(self.connection().await?);
        let begin = begin_statement(Some(Isolation::ReadCommitted));
        line.run(begin).await.map_err(TransactionFault::before_commit)?;
        let found = unit::read_ended(&mut line, attempt).await;
        line.roll_back().await;
        found
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let error = error.downcast_ref::<tokio_postgres::Error>();
        let code = error.and_then(tokio_postgres::Error::code);
        code.is_some_and(|code| CONFLICTS[..2].contains(&code.code()))
    }
}
