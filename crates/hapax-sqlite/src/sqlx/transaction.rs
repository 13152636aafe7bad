use std::{
    fmt,
    ops::{Deref, DerefMut},
    time::Duration,
};

use hapax_core::{
    Event, StoreError, Timestamp, TransactionError, outbox::Ringer, transaction::End,
};
use hapax_sql::operation::{
    self,
    unit::{self, RecordPlace},
};
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, SqlSafeStr as _, Sqlite, SqliteConnection,
    pool::PoolConnection,
};
use sqlx_core::transaction::TransactionManager as _;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    error::{by_hand, nothing_written},
    outbox::emit,
};
use crate::transaction::{LogRecord, RELEASE, UNDO};

type Manager = <Sqlite as sqlx::Database>::TransactionManager;

/// A transaction that holds a claim: write through it as through any connection of `sqlx`.
///
/// Its own `begin` makes savepoints, which are welcome. `COMMIT` and `ROLLBACK` are not the
/// caller's to give. Dropped without an end, its connection is closed, which rolls it back.
pub struct Transaction<P = ForOperation> {
    pub(super) held: CleanConnection,
    pub(super) purpose: P,
    events: Vec<Event>,
    ringer: Option<Ringer>,
    /// Whose turn it is to write, in this process.
    _turn: OwnedSemaphorePermit,
}

impl<P> Transaction<P> {
    pub(super) fn new(
        held: CleanConnection,
        purpose: P,
        ringer: Option<Ringer>,
        turn: OwnedSemaphorePermit,
    ) -> Self {
        Self { held, purpose, events: Vec::new(), ringer, _turn: turn }
    }

    /// Writes the events that waited for the commit.
    pub(super) async fn publish(&mut self) -> Result<(), StoreError> {
        for event in &self.events {
            emit(&mut self.held, event).await.map_err(nothing_written)?;
        }
        Ok(())
    }

    /// Publishes an event if, and only if, this transaction commits. It is written at its end; to
    /// write it at once, use [`emit`](super::emit).
    pub fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(super) async fn commit(self) -> sqlx::Result<()> {
        let Self { held, events, ringer, .. } = self;
        held.commit().await?;
        if let Some(ringer) = ringer.filter(|_| !events.is_empty()) {
            ringer.ring();
        }
        Ok(())
    }

    pub(super) async fn roll_back(self) {
        self.held.roll_back().await;
    }
}

impl Transaction {
    pub(super) async fn undo(&mut self) -> Result<(), StoreError> {
        self.events.clear();
        self.held.execute(UNDO).await.map_err(by_hand).map(|_| ())
    }

    /// Writes the events and the record, which is kept until then; the commit is left to do.
    pub(super) async fn write(&mut self, end: &End) -> Result<Timestamp, TransactionError> {
        self.held.execute(RELEASE).await.map_err(by_hand)?;
        self.publish().await?;
        unit::leave(&mut self.held, &self.purpose, end, RecordPlace::Open).await
    }
}

impl<P> Deref for Transaction<P> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.held
    }
}

impl<P> DerefMut for Transaction<P> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.held
    }
}

impl<P: fmt::Debug> fmt::Debug for Transaction<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

/// What a transaction is for: an operation.
pub type ForOperation = operation::ForOperation<LogRecord>;

/// A connection that returns to its pool only if it is known to be as it was; otherwise it is
/// closed.
pub(super) struct CleanConnection {
    connection: PoolConnection<Sqlite>,
    clean: bool,
}

impl CleanConnection {
    pub(super) fn new(connection: PoolConnection<Sqlite>) -> Self {
        Self { connection, clean: false }
    }

    pub(super) fn give_back(mut self) {
        self.look_clean();
    }

    /// Nothing is under way: without an open transaction, the connection is as it was.
    pub(super) fn look_clean(&mut self) {
        self.clean = !self.connection.is_in_transaction();
    }

    /// Something is under way, which may be cut off.
    pub(super) fn look_dirty(&mut self) {
        self.clean = false;
    }

    /// Takes the write lock, waiting up to `wait` for whoever has it.
    pub(super) async fn begin_immediate(&mut self, wait: Option<Duration>) -> sqlx::Result<()> {
        let before = match wait {
            None => None,
            Some(wait) => Some(self.be_patient(wait.as_millis()).await?),
        };
        let statement = "BEGIN IMMEDIATE".into_sql_str();
        let begun = Manager::begin(&mut self.connection, Some(statement)).await;
        if let Some(before) = before {
            self.be_patient(before).await?;
        }
        begun
    }

    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        Manager::commit(&mut self.connection).await?;
        self.give_back();
        Ok(())
    }

    pub(super) async fn roll_back(mut self) {
        // One for each savepoint the caller forgot, and one for the transaction.
        while self.connection.is_in_transaction() {
            if let Err(error) = Manager::rollback(&mut self.connection).await {
                tracing::warn!(%error, "a transaction was not rolled back; closing its connection");
                return;
            }
        }
        self.give_back();
    }

    /// Sets how long this connection waits for locks, and returns what it was before.
    async fn be_patient(&mut self, millis: u128) -> sqlx::Result<u128> {
        let before: i64 =
            sqlx::query_scalar("PRAGMA busy_timeout").fetch_one(&mut *self.connection).await?;
        let before = u128::try_from(before).unwrap_or(0);
        if before != millis {
            let millis = i32::try_from(millis).unwrap_or(i32::MAX);
            let set = AssertSqlSafe(format!("PRAGMA busy_timeout = {millis}"));
            sqlx::raw_sql(set).execute(&mut *self.connection).await?;
        }
        Ok(before)
    }
}

impl Deref for CleanConnection {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for CleanConnection {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

impl Drop for CleanConnection {
    fn drop(&mut self) {
        if !self.clean {
            self.connection.close_on_drop();
        }
    }
}
