//! The inbox of an `sqlx` pool.

use std::{error::Error, sync::Arc};

use hapax_core::{
    StoreError, TransactionError,
    inbox::{First, Inbox, MessageAnswer, MessageArrival, MessageEnd, MessageEntered},
    transaction::Database as _,
};
use hapax_sql::{
    ResultRow, Session, TransactionFault, Value,
    inbox::{ForMessages, InboxContext, unit},
};
use sqlx::{Row as _, TypeInfo as _, ValueRef as _, sqlite::SqliteRow};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};

use super::{
    database::Database,
    error::{commit_failed, fault, is_busy, nothing_written},
    transaction::{CleanConnection, Transaction},
};
use crate::inbox::{
    session::{json_bytes, json_numbers, json_texts},
    statements::STATEMENTS,
};

impl Inbox for Database {
    type Transaction = Transaction<ForMessages>;

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Self::Transaction>, TransactionError> {
        let Some(mut begun) = self.begun().await? else {
            return Ok(MessageEntered::Answer(MessageAnswer::Busy));
        };
        match unit::enter(&mut begun.held, self.context(), None, arrival).await? {
            Ok(purpose) => Ok(MessageEntered::First(First {
                last: purpose.last(),
                held: purpose.held(),
                transaction: self.kept(begun, purpose),
            })),
            Err(answer) => {
                begun.held.roll_back().await;
                Ok(MessageEntered::Answer(answer))
            }
        }
    }

    async fn enter_all(
        &self,
        arrivals: &[MessageArrival],
    ) -> Result<Option<Self::Transaction>, TransactionError> {
        let Some(mut begun) = self.begun().await? else { return Ok(None) };
        let entered = unit::enter_all(&mut begun.held, self.context(), None, arrivals).await?;
        let Some(purpose) = entered else {
            begun.held.roll_back().await;
            return Ok(None);
        };
        Ok(Some(self.kept(begun, purpose)))
    }

    async fn leave(
        &self,
        mut transaction: Self::Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        unit::leave(&mut transaction.held, self.context(), &transaction.purpose, end).await?;
        transaction.publish().await?;
        transaction.commit().await.map_err(commit_failed)
    }

    async fn take_back(&self, transaction: Self::Transaction) {
        transaction.roll_back().await;
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        self.is_conflict(error)
    }

    hapax_sql::inbox_tables!();
}

/// An open transaction, and the turn to write in it.
struct Begun {
    held: CleanConnection,
    turn: OwnedSemaphorePermit,
}

impl Database {
    /// A transaction that has the write lock; `None` if others wrote for too long.
    async fn begun(&self) -> Result<Option<Begun>, StoreError> {
        let until = Instant::now() + self.patience;
        let turn = timeout_at(until, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Ok(None) };
        let mut held = self.hold().await?;
        let left = until.saturating_duration_since(Instant::now());
        match held.begin_immediate(Some(left)).await {
            Ok(()) => Ok(Some(Begun { held, turn })),
            Err(error) if is_busy(&error) => {
                held.give_back();
                Ok(None)
            }
            Err(error) => Err(nothing_written(error)),
        }
    }

    fn kept(&self, Begun { held, turn }: Begun, purpose: ForMessages) -> Transaction<ForMessages> {
        Transaction::new(held, purpose, self.ringer.clone(), turn)
    }

    async fn session(&self) -> Result<CleanConnection, StoreError> {
        match self.salt().await {
            Ok(_) => self.hold().await,
            Err(TransactionError::Conflict(cause) | TransactionError::Taken(cause)) => {
                Err(StoreError::Unavailable(cause))
            }
            Err(TransactionError::Store(error)) => Err(error),
        }
    }

    fn context(&self) -> InboxContext {
        InboxContext { statements: &STATEMENTS, now: Some(self.clock.now()), salt: None }
    }
}

impl Session for CleanConnection {
    type Row = DriverRow;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<DriverRow>, TransactionFault> {
        let mut query = sqlx::query(text);
        for value in values {
            query = match *value {
                Value::Number(number) => query.bind(number),
                Value::Text(text) => query.bind(text.map(str::to_owned)),
                Value::Bytes(bytes) => query.bind(bytes.map(<[u8]>::to_vec)),
                Value::Numbers(numbers) => query.bind(json_numbers(numbers)),
                Value::Texts(texts) => query.bind(json_texts(texts)),
                Value::ManyBytes(many) => query.bind(json_bytes(many)),
            };
        }
        self.look_dirty();
        let answered = query.fetch_all(&mut **self).await;
        self.look_clean();
        Ok(answered.map_err(fault)?.into_iter().map(DriverRow).collect())
    }
}

/// A row of the driver's.
pub(super) struct DriverRow(SqliteRow);

impl DriverRow {
    /// The column, if it is of this kind; SQLite keeps a kind for each value.
    fn maybe<'r, T>(&'r self, at: usize, kind: &str) -> Result<Option<T>, TransactionFault>
    where
        T: sqlx::Decode<'r, sqlx::Sqlite>,
    {
        let value = self.0.try_get_raw(at).map_err(TransactionFault::damaged)?;
        if value.is_null() {
            return Ok(None);
        }
        if value.type_info().name() != kind {
            return Err(TransactionFault::unexpected(at));
        }
        T::decode(value).map(Some).map_err(TransactionFault::damaged)
    }
}

impl ResultRow for DriverRow {
    fn maybe_number(&self, at: usize) -> Result<Option<i64>, TransactionFault> {
        self.maybe(at, "INTEGER")
    }

    fn maybe_text(&self, at: usize) -> Result<Option<&str>, TransactionFault> {
        self.maybe(at, "TEXT")
    }

    fn maybe_bytes(&self, at: usize) -> Result<Option<&[u8]>, TransactionFault> {
        self.maybe(at, "BLOB")
    }
}
