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

use tokio::sync::OnceCell;

use super::driver::{self as sqlx, Executor, PgConnection, PgPool, Postgres, Row, postgres::PgRow};
use crate::transaction::{
    CANCEL, CLAIM, END, FOLLOW, Isolation, LOCK, MAKE_ROOM, READ, SALT, SAVEPOINT, STORE, UNDO,
    begin_statement,
    error::{CONFLICTS, TransactionFault},
    events::{EmittedEvents, EventColumns, EventLog, SEGMENT},
    session::{ClaimValues, Fresh, Session, TransactionRow, read_row},
    unit::{
        self, Held, LockName, Placing, TransactionPurpose, checked_salt, end_soon, enter_session,
    },
};

/// The caller's pool, as a database that keeps a record in the caller's transaction.
#[derive(Clone)]
pub struct Database {
    pub(crate) pool: PgPool,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) log: EventLog,
    salt: Arc<OnceCell<Salt>>,
}

impl Database {
    /// Uses this pool. The schema must have been made: `hapax migrate`, or
    /// [`Store::migrate`](crate::Store::migrate).
    pub fn new(pool: PgPool) -> Self {
        Self { pool, isolation: None, log: EventLog::default(), salt: Arc::default() }
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

    /// Cancels what runs in the transaction that holds this lock.
    pub(crate) async fn cancel(&self, lock: Option<LockName>) {
        if let Some(LockName { kind, name }) = lock
            && let Err(error) = sqlx::query(CANCEL).bind(kind).bind(name).execute(&self.pool).await
        {
            tracing::warn!(%error, "a statement that nobody waits for could not be cancelled");
        }
    }

    /// Makes room for an outcome, outside of the transaction that missed it.
    async fn make_room(&self, held: &Held, end: &End) -> TransactionError {
        let (expires_at, keep) = (held.expires_at, micros(end.keep));
        let made = async {
            let mut connection = self.pool.acquire().await?;
            DriverConnection(&mut connection).make_room(expires_at, keep).await
        };
        match made.await.map_err(TransactionFault::before_commit) {
            Ok(()) => {
                TransactionError::conflict("there was no table for the outcome; now there is")
            }
            Err(error) => error,
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
        let TransactionPurpose::Operation { held, retention } = &self.purpose else {
            return Err(TransactionFault::unanswered("the transaction is a message's"));
        };
        let Some((ending, placing)) = unit::ending(held, *retention, end) else {
            return Err(TransactionFault::unanswered("only an answer can be stored"));
        };
        self.events.publish(&mut DriverConnection(&mut self.inner)).await?;
        let sealed = &ending.sealed;
        let write = match placing {
            Placing::Beside(Fresh { bucket, response, .. }) => {
                sqlx::query(STORE).bind(bucket).bind(response)
            }
            Placing::WithTheRow => {
                let Attempt { id, fence, owner } = held.attempt;
                let write = sqlx::query(END).bind(id.as_bytes().to_vec()).bind(fence.get());
                write.bind(owner.0).bind(ending.state).bind(ending.keep)
            }
        };
        let write = write.bind(&sealed.head[..]).bind(&sealed.body[..]).bind(&sealed.digest[..]);
        match write.execute(&mut *self.inner).await?.rows_affected() {
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
        let read = async {
            let read = sqlx::query(SALT).fetch_one(&self.pool).await;
            let columns =
                read.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
            let (version, works_with, salt): (_, _, Vec<u8>) =
                columns.map_err(|error| TransactionFault::from(error).before_commit())?;
            checked_salt(version, works_with, &salt)
        };
        self.salt.get_or_try_init(|| read).await.copied()
    }

    async fn begin(&self, entrance: &Entrance) -> Result<Entered<Transaction>, TransactionError> {
        let salt = self.salt().await?;
        let begun = self.pool.begin_with(begin_statement(self.isolation)).await;
        let mut inner = begun.map_err(|error| TransactionFault::from(error).before_commit())?;
        let mut line = DriverConnection(&mut inner);
        let entered = match line.claim(entrance).await.map_err(TransactionFault::before_commit) {
            Ok(first) => enter_session(&mut line, entrance, first).await,
            Err(error) => Err(error),
        };
        match entered {
            Ok(Ok(held)) => {
                let attempt = held.attempt;
                let retention = entrance.policy.retention().window;
                let purpose = TransactionPurpose::Operation { held, retention };
                let events = EmittedEvents::none(&self.log, salt);
                let transaction = Transaction { inner, purpose, events };
                Ok(Entered::Execute(Granted { transaction, attempt }))
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

    async fn finish(
        &self,
        mut transaction: Transaction,
        end: &End,
    ) -> Result<Timestamp, TransactionError> {
        let expires_at = match &transaction.purpose {
            TransactionPurpose::Operation { held, .. } => held.expires_at,
            TransactionPurpose::Message(_) => Timestamp::ZERO,
        };
        if let Err(fault) = transaction.end(end).await {
            let Transaction { inner, purpose, .. } = transaction;
            roll_back(inner).await;
            return Err(match purpose {
                TransactionPurpose::Operation { held, .. } if fault.is_missing_bucket() => {
                    self.make_room(&held, end).await
                }
                TransactionPurpose::Operation { .. } | TransactionPurpose::Message(_) => {
                    fault.before_commit()
                }
            });
        }
        transaction.commit().await?;
        Ok(expires_at)
    }

    async fn fail(
        &self,
        mut transaction: Transaction,
        end: &End,
    ) -> Result<Timestamp, TransactionError> {
        transaction.events.forget();
        let undone = DriverConnection(&mut transaction.inner).run(UNDO).await;
        undone.map_err(TransactionFault::before_commit)?;
        self.finish(transaction, end).await
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

    async fn claim(&mut self, entrance: &Entrance) -> Result<Option<Fresh>, TransactionFault> {
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
        let expires_at = Timestamp::from_micros(row.try_get(0)?);
        Ok(Some(Fresh { expires_at, bucket: row.try_get(1)?, response: row.try_get(2)? }))
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

    async fn emit(
        &mut self,
        text: &'static str,
        segment: i64,
        events: &EventColumns,
    ) -> Result<u64, TransactionFault> {
        let emit = sqlx::query(text).bind(segment).bind(&events.locks).bind(&events.lanes);
        let emit = emit.bind(&events.topics).bind(&events.keys).bind(&events.content_types);
        let emit = emit.bind(&events.headers).bind(&events.payloads);
        Ok(emit.execute(&mut *self.0).await?.rows_affected())
    }

    async fn segment(&mut self) -> Result<i64, TransactionFault> {
        Ok(sqlx::query(SEGMENT).fetch_one(&mut *self.0).await?.try_get(0)?)
    }

    async fn make_room(
        &mut self,
        expires_at: Timestamp,
        keep: i64,
    ) -> Result<(), TransactionFault> {
        let make = sqlx::query(MAKE_ROOM).bind(expires_at.as_micros()).bind(keep);
        make.execute(&mut *self.0).await?;
        Ok(())
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
