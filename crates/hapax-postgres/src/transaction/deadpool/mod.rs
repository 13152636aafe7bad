//! Same-transaction mode on a deadpool of tokio-postgres connections.

pub(crate) mod pooled_connection;
mod session;

use std::{
    error::Error,
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use deadpool_postgres::{Object, Pool};
use hapax_core::{
    Attempt, Event, Record, Salt, StoreError, Timestamp, TransactionError,
    outbox::Ringer,
    transaction::{self, End, Entered, Entrance, Granted, TransactionAnswer},
};
use hapax_sql::{
    TransactionFault,
    operation::{
        ForOperation,
        unit::{self, RecordPlace},
    },
};
use tokio::sync::OnceCell;

use self::{pooled_connection::PooledConnection, session::fault};
use super::{
    CANCEL, Isolation, begin_statement,
    error::CONFLICTS,
    events::{EmittedEvents, EventLog},
    unit::{KnownSchema, LockName, Purpose, end_soon, record_of},
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
    pub(crate) log: EventLog,
    schema: Arc<OnceCell<KnownSchema>>,
}

impl Database {
    /// Uses this pool. The schema must have been made: `hapax migrate`, or
    /// [`Store::migrate`](crate::Store::migrate).
    pub fn new(pool: Pool) -> Self {
        Self { pool, isolation: None, log: EventLog::default(), schema: Arc::default() }
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
        Self { log: self.log.ringing(ringer), ..self }
    }

    /// Publishes these events by themselves, together or not at all: for what happened outside of any
    /// transaction. An event about something that is written goes with it: [`Transaction::emit`].
    ///
    /// After [`StoreError::Unconfirmed`] nobody knows whether they were; to emit them again may
    /// publish them twice.
    pub async fn emit(&self, events: Vec<Event>) -> Result<(), TransactionError> {
        let mut line = PooledConnection(self.connection().await?);
        let mut waiting = EmittedEvents::of(&self.log, self.salt_on(&mut line).await?, events);
        let published = waiting.publish_alone(&mut line).await;
        if let Err(fault) = published {
            line.close();
            return Err(fault.of_commit());
        }
        waiting.committed();
        Ok(())
    }

    pub(crate) async fn connection(&self) -> Result<Object, TransactionError> {
        Ok(self.pool.get().await.map_err(StoreError::unavailable)?)
    }

    /// Takes back everything a transaction did, soon, whatever it is for.
    pub(crate) async fn undo_all<P: Purpose>(&self, mut transaction: Transaction<P>) {
        if let Some(line) = transaction.line.take() {
            end_soon(line.roll_back(), self.cancel(transaction.purpose.lock())).await;
        }
    }

    /// Cancels what runs in the transaction that holds this lock.
    async fn cancel(&self, lock: Option<LockName>) {
        if let Some(LockName { kind, name }) = lock
            && let Ok(connection) = self.connection().await
            && let Err(error) = connection.query(CANCEL, &[&kind, &name]).await
        {
            tracing::warn!(%error, "a statement that nobody waits for could not be cancelled");
        }
    }

    /// The salt, read on a connection that is there already.
    pub(crate) async fn salt_on(
        &self,
        line: &mut PooledConnection,
    ) -> Result<Salt, TransactionError> {
        Ok(self.schema_on(line).await?.salt)
    }

    async fn schema_on(
        &self,
        line: &mut PooledConnection,
    ) -> Result<KnownSchema, TransactionError> {
        self.schema.get_or_try_init(|| line.schema()).await.copied()
    }

    /// Begins, and finds out whether an operation may be run.
    async fn enter(
        &self,
        line: &mut PooledConnection,
        entrance: &Entrance,
        schema: &KnownSchema,
    ) -> Result<Result<ForOperation, TransactionAnswer>, TransactionError> {
        let begin = Some(begin_statement(self.isolation));
        let record = record_of(&schema.salt, entrance.operation.id(), begin);
        if !schema.looks_before(self.isolation) {
            return unit::enter(line, record, entrance).await;
        }
        let mut operation = match unit::look_before(line, record, entrance).await? {
            Ok(operation) => operation,
            Err(answer) => return Ok(Err(answer)),
        };
        let refused = unit::enter_seen(line, &mut operation).await?;
        Ok(refused.map_or(Ok(operation), Err))
    }

    fn granted(
        &self,
        line: PooledConnection,
        purpose: ForOperation,
        salt: Salt,
    ) -> Entered<Transaction> {
        let (attempt, events) = (purpose.attempt(), EmittedEvents::none(&self.log, salt));
        let transaction = Transaction { line: Some(line), purpose, events };
        Entered::Execute(Granted { transaction, attempt })
    }

    /// Gives a connection back after the end of its transaction failed.
    async fn ended(
        line: PooledConnection,
        ended: Result<Timestamp, TransactionError>,
    ) -> Result<Timestamp, TransactionError> {
        match &ended {
            Ok(_) => {}
            Err(TransactionError::Store(StoreError::Unconfirmed(_))) => line.close(),
            Err(_) => line.roll_back().await,
        }
        ended
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
pub struct Transaction<P = ForOperation> {
    pub(crate) line: Option<PooledConnection>,
    pub(crate) purpose: P,
    pub(crate) events: EmittedEvents,
}

impl<P> Transaction<P> {
    /// Publishes this event if, and only if, the transaction commits.
    pub fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn line(&mut self) -> &mut PooledConnection {
        #[expect(clippy::expect_used, reason = "only ending consumes the transaction")]
        self.line.as_mut().expect("a transaction has its connection until it ends")
    }
}

impl<P> Deref for Transaction<P> {
    type Target = deadpool_postgres::ClientWrapper;

    fn deref(&self) -> &Self::Target {
        #[expect(clippy::expect_used, reason = "only ending consumes the transaction")]
        &self.line.as_ref().expect("a transaction has its connection until it ends").0
    }
}

impl<P> DerefMut for Transaction<P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.line().0
    }
}

impl<P> Drop for Transaction<P> {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            line.close();
        }
    }
}

impl<P: fmt::Debug> fmt::Debug for Transaction<P> {
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
        self.salt_on(&mut PooledConnection(self.connection().await?)).await
    }

    async fn begin(&self, entrance: &Entrance) -> Result<Entered<Transaction>, TransactionError> {
        let mut line = PooledConnection(self.connection().await?);
        let schema = self.schema_on(&mut line).await?;
        match self.enter(&mut line, entrance, &schema).await {
            Ok(Ok(purpose)) => Ok(self.granted(line, purpose, schema.salt)),
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

    async fn begin_unseen(
        &self,
        entrance: &Entrance,
    ) -> Result<Entered<Transaction>, TransactionError> {
        let mut line = PooledConnection(self.connection().await?);
        let salt = self.salt_on(&mut line).await?;
        let record = record_of(&salt, entrance.operation.id(), None);
        let begun = line.0.batch_execute(begin_statement(self.isolation)).await;
        begun.map_err(|error| fault(error).before_commit())?;
        Ok(self.granted(line, ForOperation::unseen(record, entrance), salt))
    }

    async fn finish(
        &self,
        mut transaction: Transaction,
        end: &End,
    ) -> Result<Timestamp, TransactionError> {
        let Some(mut line) = transaction.line.take() else { return Err(over()) };
        let ended = async {
            let published = transaction.events.publish(&mut line).await;
            published.map_err(TransactionFault::before_commit)?;
            let place = RecordPlace::Committed("COMMIT");
            unit::leave(&mut line, &transaction.purpose, end, place).await
        };
        let ended = ended.await;
        let expires_at = Self::ended(line, ended).await?;
        transaction.events.committed();
        Ok(expires_at)
    }

    async fn fail(
        &self,
        mut transaction: Transaction,
        end: &End,
    ) -> Result<Timestamp, TransactionError> {
        let Some(mut line) = transaction.line.take() else { return Err(over()) };
        let place = RecordPlace::Alone(Some("ROLLBACK"));
        let ended = unit::leave(&mut line, &transaction.purpose, end, place).await;
        Self::ended(line, ended).await
    }

    async fn roll_back(&self, transaction: Transaction) {
        self.undo_all(transaction).await;
    }

    async fn find_out(&self, attempt: &Attempt) -> Result<Option<Record>, TransactionError> {
        let mut line = PooledConnection(self.connection().await?);
        let record = record_of(&self.salt_on(&mut line).await?, attempt.id, None);
        let begun = line.0.batch_execute(begin_statement(Some(Isolation::ReadCommitted))).await;
        begun.map_err(|error| fault(error).before_commit())?;
        let found = unit::read_ended(&mut line, record).await;
        line.roll_back().await;
        found
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let error = error.downcast_ref::<tokio_postgres::Error>();
        let code = error.and_then(tokio_postgres::Error::code);
        code.is_some_and(|code| CONFLICTS[..2].contains(&code.code()))
    }
}

fn over() -> TransactionError {
    StoreError::unavailable("the transaction has ended").into()
}
