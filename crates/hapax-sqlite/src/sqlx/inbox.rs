//! The inbox of an `sqlx` pool.

use std::{error::Error, sync::Arc, time::Duration};

use hapax_core::{
    Key, Scope, StoreError, TransactionError,
    clock::{ClockMark, ClockReading},
    inbox::{
        First, Inbox, Letter, Message, MessageAnswer, MessageArrival, MessageEnd, MessageEntered,
        Partition, RegisteredConsumer, Taken, Waiting,
    },
    transaction::Database as _,
};
use sqlx::{Row as _, TypeInfo as _, ValueRef as _, sqlite::SqliteRow};
use tokio::time::{Instant, timeout_at};

use super::{
    database::Database,
    error::{commit_failed, is_busy, nothing_written},
    transaction::{CleanConnection, Purpose, Transaction},
};
use crate::inbox::{
    cell::{Cell, Cells},
    sql_session::SqlSession,
    tables, unit,
};

impl Inbox for Database {
    type Transaction = Transaction;

    async fn enlist(
        &self,
        name: &Scope,
        retention: Duration,
    ) -> Result<RegisteredConsumer, StoreError> {
        self.salt().await.map_err(plainly)?;
        let mut desk = self.hold().await?;
        let enlisted = tables::enlist(&mut desk, name, retention).await;
        desk.give_back();
        enlisted
    }

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Transaction>, TransactionError> {
        let busy = MessageEntered::Answer(MessageAnswer::Busy);
        let until = Instant::now() + self.patience;
        let turn = timeout_at(until, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Ok(busy) };
        let mut held = self.hold().await?;
        let left = until.saturating_duration_since(Instant::now());
        match held.begin_immediate(Some(left)).await {
            Ok(()) => {}
            Err(error) if is_busy(&error) => {
                held.give_back();
                return Ok(busy);
            }
            Err(error) => return Err(nothing_written(error).into()),
        }
        match unit::enter(&mut held, self.clock.now(), arrival).await? {
            Ok((last, behind)) => {
                let purpose = Purpose::Message(arrival.clone());
                let transaction = Transaction::new(held, purpose, self.ringer.clone(), turn);
                Ok(MessageEntered::First(First { transaction, last, held: behind }))
            }
            Err(answer) => {
                held.roll_back().await;
                Ok(MessageEntered::Answer(answer))
            }
        }
    }

    async fn leave(
        &self,
        mut transaction: Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        let Some(arrival) = transaction.arrival() else {
            return Err(StoreError::unavailable("the transaction is an operation's").into());
        };
        unit::leave(&mut transaction.held, self.clock.now(), &arrival, end).await?;
        transaction.publish().await?;
        transaction.commit().await.map_err(commit_failed)
    }

    async fn take_back(&self, transaction: Transaction) {
        transaction.roll_back().await;
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        self.is_conflict(error)
    }

    async fn missed(&self, consumer: &RegisteredConsumer, id: &Key) -> Result<u32, StoreError> {
        let mut desk = self.hold().await?;
        let missed = tables::missed(&mut desk, self.clock.now(), consumer, id).await;
        desk.give_back();
        missed
    }

    async fn bury(&self, consumer: &RegisteredConsumer, letter: &Letter) -> Result<(), StoreError> {
        let mut desk = self.hold().await?;
        let buried = tables::bury(&mut desk, self.clock.now(), consumer, letter).await;
        desk.give_back();
        buried
    }

    async fn take(
        &self,
        consumer: &RegisteredConsumer,
        partition: &Partition,
    ) -> Result<Taken, StoreError> {
        let mut desk = self.hold().await?;
        let taken = tables::take(&mut desk, consumer, partition).await;
        desk.give_back();
        taken
    }

    async fn waiting(
        &self,
        consumer: &RegisteredConsumer,
        waiting: &Waiting,
    ) -> Result<Vec<Arc<Message>>, StoreError> {
        let mut desk = self.hold().await?;
        let found = tables::waiting(&mut desk, self.clock.now(), consumer, waiting).await;
        desk.give_back();
        found
    }

    async fn forget(&self, limit: usize) -> Result<usize, StoreError> {
        let mut desk = self.hold().await?;
        let gone = tables::forget(&mut desk, self.clock.now(), limit).await;
        desk.give_back();
        gone
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        let mut desk = self.hold().await?;
        let reading = tables::clock(&mut desk, self.clock.now()).await;
        desk.give_back();
        reading
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        let mut desk = self.hold().await?;
        let kept = tables::keep_clock(&mut desk, mark).await;
        desk.give_back();
        kept
    }
}

impl SqlSession for CleanConnection {
    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Cell],
    ) -> Result<Vec<Cells>, TransactionError> {
        let mut query = sqlx::query(text);
        for value in values {
            query = match value {
                Cell::Number(number) => query.bind(*number),
                Cell::Text(text) => query.bind(text.clone()),
                Cell::Bytes(bytes) => query.bind(bytes.clone()),
                Cell::Null => query.bind(None::<String>),
            };
        }
        let rows =
            query.fetch_all(&mut **self).await.and_then(|rows| rows.iter().map(cells).collect());
        rows.map_err(|error| {
            if is_busy(&error) {
                TransactionError::conflict(error)
            } else {
                nothing_written(error).into()
            }
        })
    }
}

fn cells(row: &SqliteRow) -> sqlx::Result<Cells> {
    let cell = |at: usize| {
        let value = row.try_get_raw(at)?;
        if value.is_null() {
            return Ok(Cell::Null);
        }
        Ok(match value.type_info().name() {
            "INTEGER" => Cell::Number(row.try_get_unchecked(at)?),
            "BLOB" => Cell::Bytes(row.try_get_unchecked(at)?),
            _ => Cell::Text(row.try_get_unchecked(at)?),
        })
    };
    (0..row.len()).map(cell).collect::<sqlx::Result<_>>().map(Cells)
}

fn plainly(error: TransactionError) -> StoreError {
    match error {
        TransactionError::Conflict(cause) | TransactionError::Taken(cause) => {
            StoreError::Unavailable(cause)
        }
        TransactionError::Store(error) => error,
    }
}
