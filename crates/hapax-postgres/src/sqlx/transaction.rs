//! Same-transaction mode on a sqlx pool.
//!
//! The same source for every version of sqlx: `driver` is the one it is compiled against.

use std::{
    error::Error,
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use hapax_core::{
    Attempt, Event, Record, Salt, Timestamp, TransactionError,
    outbox::Ringer,
    transaction::{self, End, Entered, Entrance, Granted},
};
use hapax_sql::{
    TransactionFault,
    operation::{
        ForOperation,
        unit::{self, RecordPlace},
    },
};
use tokio::sync::OnceCell;

use super::{
    driver::{self as sqlx, PgConnection, PgPool, Postgres, Row},
    session::{DriverConnection, fault},
};
use crate::transaction::{
    CANCEL, Isolation, SCHEMA, begin_statement,
    error::CONFLICTS,
    events::{EmittedEvents, EventLog},
    unit::{KnownSchema, LockName, Purpose, end_soon, record_of},
};

/// The caller's pool, as a database that keeps a record in the caller's transaction.
#[derive(Clone)]
pub struct Database {
    pub(crate) pool: PgPool,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) log: EventLog,
    schema: Arc<OnceCell<KnownSchema>>,
}

impl Database {
    /// Uses this pool. The schema must have been made: `hapax migrate`, or
    /// [`Store::migrate`](crate::Store::migrate).
    pub fn new(pool: PgPool) -> Self {
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
    /// After [`StoreError::Unconfirmed`](hapax_core::StoreError::Unconfirmed) nobody knows whether they
    /// were; to emit them again may publish them twice.
    pub async fn emit(&self, events: Vec<Event>) -> Result<(), TransactionError> {
        let salt = transaction::Database::salt(self).await?;
        let mut waiting = EmittedEvents::of(&self.log, salt, events);
        let connection = self.pool.acquire().await.map_err(|error| fault(error).before_commit())?;
        let mut line = DriverConnection(connection);
        if let Err(fault) = waiting.publish_alone(&mut line).await {
            // A connection that may be inside of a transaction goes to nobody else.
            drop(line.0.detach());
            return Err(fault.of_commit());
        }
        waiting.committed();
        Ok(())
    }

    /// Takes back everything a transaction did, soon, whatever it is for.
    pub(crate) async fn undo_all<P: Purpose>(&self, transaction: Transaction<P>) {
        let Transaction { inner, purpose, .. } = transaction;
        end_soon(roll_back(inner), self.cancel(purpose.lock())).await;
    }

    /// Cancels what runs in the transaction that holds this lock.
    async fn cancel(&self, lock: Option<LockName>) {
        if let Some(LockName { kind, name }) = lock
            && let Err(error) = sqlx::query(CANCEL).bind(kind).bind(name).execute(&self.pool).await
        {
            tracing::warn!(%error, "a statement that nobody waits for could not be cancelled");
        }
    }

    pub(crate) async fn begun(
        &self,
    ) -> Result<sqlx::Transaction<'static, Postgres>, TransactionError> {
        let begun = self.pool.begin_with(begin_statement(self.isolation)).await;
        begun.map_err(|error| fault(error).before_commit())
    }

    fn granted(
        &self,
        inner: sqlx::Transaction<'static, Postgres>,
        purpose: ForOperation,
        salt: Salt,
    ) -> Entered<Transaction> {
        let (attempt, events) = (purpose.attempt(), EmittedEvents::none(&self.log, salt));
        let transaction = Transaction { inner, purpose, events };
        Entered::Execute(Granted { transaction, attempt })
    }

    async fn schema(&self) -> Result<KnownSchema, TransactionError> {
        self.schema.get_or_try_init(|| self.read_schema()).await.copied()
    }

    async fn read_schema(&self) -> Result<KnownSchema, TransactionError> {
        let read = sqlx::query(SCHEMA).fetch_one(&self.pool).await;
        let columns = read.and_then(|row| {
            Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
        });
        let (version, works_with, salt, is_serializable): (_, _, Vec<u8>, _) =
            columns.map_err(|error| fault(error).before_commit())?;
        KnownSchema::checked(version, works_with, &salt, is_serializable)
    }

    /// Begins where the key was looked at before.
    async fn begin_seen(
        &self,
        entrance: &Entrance,
        schema: &KnownSchema,
    ) -> Result<Entered<Transaction>, TransactionError> {
        let record = record_of(&schema.salt, entrance.operation.id(), None);
        let connection = self.pool.acquire().await.map_err(|error| fault(error).before_commit())?;
        let mut line = DriverConnection(connection);
        let mut operation = match unit::look_before(&mut line, record, entrance).await? {
            Ok(operation) => operation,
            Err(answer) => return Ok(Entered::Answer(answer)),
        };
        drop(line);
        let mut inner = self.begun().await?;
        let mut line = DriverConnection(&mut *inner);
        match unit::enter_seen(&mut line, &mut operation).await {
            Ok(None) => Ok(self.granted(inner, operation, schema.salt)),
            Ok(Some(answer)) => {
                roll_back(inner).await;
                Ok(Entered::Answer(answer))
            }
            Err(error) => {
                roll_back(inner).await;
                Err(error)
            }
        }
    }
}

/// A transaction of the pool: a connection, to be written through with `&mut **tx`.
///
/// Dropped without an end, it is rolled back. Transactions that the work begins on it are
/// savepoints inside.
pub struct Transaction<P = ForOperation> {
    pub(crate) inner: sqlx::Transaction<'static, Postgres>,
    pub(crate) purpose: P,
    pub(crate) events: EmittedEvents,
}

impl<P> Transaction<P> {
    /// Publishes this event if, and only if, the transaction commits.
    pub fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) async fn commit(self) -> Result<(), TransactionError> {
        self.inner.commit().await.map_err(|error| fault(error).of_commit())?;
        self.events.committed();
        Ok(())
    }
}

impl<P> Deref for Transaction<P> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.inner
    }
}

impl<P> DerefMut for Transaction<P> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.inner
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
        Ok(self.schema().await?.salt)
    }

    async fn begin(&self, entrance: &Entrance) -> Result<Entered<Transaction>, TransactionError> {
        let schema = self.schema().await?;
        if schema.looks_before(self.isolation) {
            return self.begin_seen(entrance, &schema).await;
        }
        let (salt, mut inner) = (schema.salt, self.begun().await?);
        let record = record_of(&salt, entrance.operation.id(), None);
        let mut line = DriverConnection(&mut *inner);
        match unit::enter(&mut line, record, entrance).await {
            Ok(Ok(purpose)) => Ok(self.granted(inner, purpose, salt)),
            Ok(Err(answer)) => {
                roll_back(inner).await;
                Ok(Entered::Answer(answer))
            }
            Err(error) => {
                roll_back(inner).await;
                Err(error)
            }
        }
    }

    async fn begin_unseen(
        &self,
        entrance: &Entrance,
    ) -> Result<Entered<Transaction>, TransactionError> {
        let (salt, inner) = (self.salt().await?, self.begun().await?);
        let record = record_of(&salt, entrance.operation.id(), None);
        Ok(self.granted(inner, ForOperation::unseen(record, entrance), salt))
    }

    async fn finish(
        &self,
        mut transaction: Transaction,
        end: &End,
    ) -> Result<Timestamp, TransactionError> {
        let written = async {
            let mut line = DriverConnection(&mut *transaction.inner);
            let published = transaction.events.publish(&mut line).await;
            published.map_err(TransactionFault::before_commit)?;
            let (purpose, place) = (&transaction.purpose, RecordPlace::Open);
            unit::leave(&mut line, purpose, end, place).await
        };
        match written.await {
            Ok(expires_at) => transaction.commit().await.map(|()| expires_at),
            Err(error) => {
                roll_back(transaction.inner).await;
                Err(error)
            }
        }
    }

    async fn fail(
        &self,
        transaction: Transaction,
        end: &End,
    ) -> Result<Timestamp, TransactionError> {
        let Transaction { inner, purpose, .. } = transaction;
        roll_back(inner).await;
        let connection = self.pool.acquire().await.map_err(|error| fault(error).before_commit())?;
        let place = RecordPlace::Alone(None);
        unit::leave(&mut DriverConnection(connection), &purpose, end, place).await
    }

    async fn roll_back(&self, transaction: Transaction) {
        self.undo_all(transaction).await;
    }

    async fn find_out(&self, attempt: &Attempt) -> Result<Option<Record>, TransactionError> {
        let record = record_of(&self.salt().await?, attempt.id, None);
        let begin = begin_statement(Some(Isolation::ReadCommitted));
        let begun = self.pool.begin_with(begin).await;
        let mut inner = begun.map_err(|error| fault(error).before_commit())?;
        let mut line = DriverConnection(&mut *inner);
        let found = unit::read_ended(&mut line, record).await;
        roll_back(inner).await;
        found
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let error = error.downcast_ref::<sqlx::Error>().and_then(sqlx::Error::as_database_error);
        let code = error.and_then(|error| error.code());
        code.is_some_and(|code| CONFLICTS[..2].contains(&&*code))
    }
}

/// A connection that cannot roll back is closed by sqlx before anybody else gets it.
pub(crate) async fn roll_back(transaction: sqlx::Transaction<'static, Postgres>) {
    if let Err(error) = transaction.rollback().await {
        tracing::warn!(%error, "a transaction could not be rolled back; its connection is closed");
    }
}
