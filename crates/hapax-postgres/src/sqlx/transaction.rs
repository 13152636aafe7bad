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
    Attempt, Event, OperationId, Record, Salt, Timestamp, TransactionError,
    outbox::Ringer,
    store::{Claim, Over},
    time::micros,
    transaction::{self, End, Entered, Entrance, Granted},
};

use super::driver::{self as sqlx, Executor, PgConnection, PgPool, Postgres, Row, postgres::PgRow};
use crate::{
    answer::Answer,
    transaction::{
        CANCEL, CLAIM, EMIT, END, FOLLOW, Isolation, LOCK, READ, SALT, SAVEPOINT, UNDO,
        begin_statement,
        error::{CONFLICTS, TransactionFault},
        events::EmittedEvents,
        session::{ClaimValues, Session, TransactionRow, read_row},
        unit::{self, LockName, TransactionPurpose, checked_salt, end_soon, enter_session},
    },
};

/// The caller's pool, as a database that keeps a record in the caller's transaction.
#[derive(Clone)]
pub struct Database {
    pub(crate) pool: PgPool,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) ringer: Option<Ringer>,
}

impl Database {
    /// Uses this pool. The schema must have been made: `hapax migrate`, or
    /// [`Store::migrate`](crate::Store::migrate).
    pub fn new(pool: PgPool) -> Self {
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

    /// Cancels what runs in the transaction that holds this lock.
    pub(crate) async fn cancel(&self, lock: Option<LockName>) {
        if let Some(LockName { kind, name }) = lock
            && let Err(error) = sqlx::query(CANCEL).bind(kind).bind(name).execute(&self.pool).await
        {
            tracing::warn!(%error, "a statement that nobody waits for could not be cancelled");
        }
    }
}

/// A transaction of the pool: a connection, to be written through with `&mut **tx`.
///
/// Dropped without an end, it is rolled back. Transactions that the work begins on it are
/// savepoints inside.
pub struct Transaction {
    pub(crate) inner: sqlx::Transaction<'static, Postgres>,
    pub(crate) purpose: TransactionPurpose,
    pub(crate) events: EmittedEvents,
}

impl Transaction {
    /// Publishes this event if, and only if, the transaction commits.
    pub fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) async fn commit(self) -> Result<(), TransactionError> {
        self.inner.commit().await.map_err(|error| TransactionFault::from(error).of_commit())?;
        self.events.committed();
        Ok(())
    }

    /// Writes the events and the outcome.
    async fn end(&mut self, end: &End) -> Result<(), TransactionFault> {
        let TransactionPurpose::Operation(held) = &self.purpose else {
            return Err(TransactionFault::unanswered("the transaction is a message's"));
        };
        let Some(ending) = unit::ending(held, end) else {
            return Err(TransactionFault::unanswered("only an answer can be stored"));
        };
        let connection = &mut *self.inner;
        publish(connection, &mut self.events).await?;
        let Attempt { id, fence, owner } = held.attempt;
        let write = sqlx::query(END).bind(id.as_bytes().to_vec()).bind(fence.get());
        let write = write.bind(owner.0).bind(ending.state).bind(ending.keep);
        let write = write.bind(Answer(&ending.sealed).to_vec());
        match write.execute(connection).await?.rows_affected() {
            1 => Ok(()),
            _ => Err(TransactionFault::unanswered("the claim is no longer there")),
        }
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.inner
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.inner
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
        let read = sqlx::query(SALT).fetch_one(&self.pool).await;
        let columns = read.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
        let (version, works_with, salt): (_, _, Vec<u8>) =
            columns.map_err(|error| TransactionFault::from(error).before_commit())?;
        checked_salt(version, works_with, &salt)
    }

    async fn begin(&self, entrance: &Entrance) -> Result<Entered<Transaction>, TransactionError> {
        let begun = self.pool.begin_with(begin_statement(self.isolation)).await;
        let mut inner = begun.map_err(|error| TransactionFault::from(error).before_commit())?;
        let mut line = DriverConnection(&mut inner);
        let entered = match line.claim(entrance).await.map_err(TransactionFault::before_commit) {
            Ok(first) => enter_session(&mut line, entrance, first).await,
            Err(error) => Err(error),
        };
        match entered {
            Ok(Ok(held)) => {
                let (attempt, expires_at) = (held.attempt, held.expires_at);
                let purpose = TransactionPurpose::Operation(held);
                let transaction =
                    Transaction { inner, purpose, events: EmittedEvents::ringing(&self.ringer) };
                Ok(Entered::Execute(Granted { transaction, attempt, expires_at }))
            }
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

    async fn undo(&self, transaction: &mut Transaction) -> Result<(), TransactionError> {
        transaction.events.forget();
        DriverConnection(&mut transaction.inner)
            .run(UNDO)
            .await
            .map_err(TransactionFault::before_commit)
    }

    async fn finish(
        &self,
        mut transaction: Transaction,
        end: &End,
    ) -> Result<(), TransactionError> {
        if let Err(fault) = transaction.end(end).await {
            roll_back(transaction.inner).await;
            return Err(fault.before_commit());
        }
        transaction.commit().await
    }

    async fn roll_back(&self, transaction: Transaction) {
        let Transaction { inner, purpose, .. } = transaction;
        end_soon(roll_back(inner), self.cancel(purpose.lock())).await;
    }

    async fn find_out(&self, attempt: &Attempt) -> Result<Option<Record>, TransactionError> {
        let begin = begin_statement(Some(Isolation::ReadCommitted));
        let begun = self.pool.begin_with(begin).await;
        let mut inner = begun.map_err(|error| TransactionFault::from(error).before_commit())?;
        let found = unit::read_ended(&mut DriverConnection(&mut inner), attempt).await;
        roll_back(inner).await;
        found
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let error = error.downcast_ref::<sqlx::Error>().and_then(sqlx::Error::as_database_error);
        let code = error.and_then(|error| error.code());
        code.is_some_and(|code| CONFLICTS[..2].contains(&&*code))
    }
}

/// Writes the events that waited for the commit.
pub(crate) async fn publish(
    line: &mut PgConnection,
    events: &mut EmittedEvents,
) -> Result<(), TransactionFault> {
    let Some(events) = events.columns() else { return Ok(()) };
    let emit = sqlx::query(EMIT).bind(events.topics).bind(events.keys);
    let emit = emit.bind(events.payloads).bind(events.headers).bind(events.content_types);
    emit.execute(line).await?;
    Ok(())
}

/// A connection that cannot roll back is closed by sqlx before anybody else gets it.
pub(crate) async fn roll_back(transaction: sqlx::Transaction<'static, Postgres>) {
    if let Err(error) = transaction.rollback().await {
        tracing::warn!(%error, "a transaction could not be rolled back; its connection is closed");
    }
}

/// A connection with an open transaction.
pub(crate) struct DriverConnection<'a>(pub(crate) &'a mut PgConnection);

impl Session for DriverConnection<'_> {
    async fn run(&mut self, text: &'static str) -> Result<(), TransactionFault> {
        self.0.execute(text).await?;
        Ok(())
    }

    async fn claim(&mut self, entrance: &Entrance) -> Result<Option<Timestamp>, TransactionFault> {
        let values = ClaimValues::of(entrance);
        let claim = sqlx::query(CLAIM)
            .bind(values.id)
            .bind(values.tenant)
            .bind(values.scope)
            .bind(values.key)
            .bind(values.fingerprint)
            .bind(values.owner)
            .bind(values.recovery)
            .bind(values.retention)
            .bind(values.tombstone);
        let Some(row) = claim.fetch_optional(&mut *self.0).await? else { return Ok(None) };
        self.run(SAVEPOINT).await?;
        Ok(Some(Timestamp::from_micros(row.try_get(0)?)))
    }

    async fn lock(&mut self, id: OperationId, wait: i64) -> Result<bool, TransactionFault> {
        let lock = sqlx::query(LOCK).bind(id.to_string()).bind(wait);
        Ok(lock.fetch_one(&mut *self.0).await?.try_get(0)?)
    }

    async fn read(&mut self, id: OperationId) -> Result<Option<TransactionRow>, TransactionFault> {
        let read = sqlx::query(READ).bind(id.as_bytes().to_vec());
        let row = read.fetch_optional(&mut *self.0).await?;
        let read = |row: PgRow| Ok::<_, sqlx::Error>(read_row!(row, id));
        Ok(row.map(read).transpose()?)
    }

    async fn follow(&mut self, claim: &Claim) -> Result<Option<Timestamp>, TransactionFault> {
        let (Over::Spent(seen) | Over::Abandoned(seen)) = claim.over else { return Ok(None) };
        let follow = sqlx::query(FOLLOW)
            .bind(claim.operation.id().as_bytes().to_vec())
            .bind(seen.fence.get())
            .bind(seen.owner.0)
            .bind(seen.tag as i16)
            .bind(seen.until.as_micros())
            .bind(claim.fence.get())
            .bind(claim.owner.0)
            .bind(matches!(claim.over, Over::Spent(_)))
            .bind(micros(claim.retention))
            .bind(micros(claim.tombstone))
            .bind(claim.recovery as i16)
            .bind(&claim.fingerprint.as_bytes()[..]);
        let row = follow.fetch_optional(&mut *self.0).await?;
        let expires_at = row.map(|row| row.try_get(0)).transpose()?;
        Ok(expires_at.map(Timestamp::from_micros))
    }
}

impl From<sqlx::Error> for TransactionFault {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        match code.map(|code| code.into_owned()) {
            Some(code) => Self::Refused { code, cause: Arc::new(error) },
            None => Self::unanswered(error),
        }
    }
}
