//! The inbox on a sqlx pool.

use std::{error::Error, sync::Arc, time::Duration};

use hapax_core::{
    Key, Scope, StoreError, TransactionError,
    clock::{ClockMark, ClockReading},
    inbox::{
        First, Inbox, Letter, Message, MessageArrival, MessageEnd, MessageEntered, Partition,
        RegisteredConsumer, Taken, Waiting,
    },
    transaction::Database as _,
};

use super::{
    driver::{
        self as sqlx, Column as _, PgConnection, Postgres, Row as _, TypeInfo as _,
        pool::PoolConnection, postgres::PgRow,
    },
    transaction::{Database, DriverConnection, Transaction, roll_back},
};
use crate::{
    inbox::{
        cell::{Cell, Cells},
        sql_session::SqlSession,
        tables,
        unit::{self, Carried},
    },
    transaction::{
        begin_statement,
        error::{TransactionFault, is_gone},
        events::EmittedEvents,
        unit::TransactionPurpose,
    },
};

impl Inbox for Database {
    type Transaction = Transaction;

    async fn enlist(
        &self,
        name: &Scope,
        retention: Duration,
    ) -> Result<RegisteredConsumer, StoreError> {
        tables::enlist(&mut DriverConnection(&mut *self.session().await?), name, retention).await
    }

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Transaction>, TransactionError> {
        let (text, values) = unit::opening(arrival)?;
        let salt = self.salt().await?;
        let begun = self.pool.begin_with(begin_statement(self.isolation)).await;
        let mut inner = begun.map_err(|error| TransactionFault::from(error).before_commit())?;
        let entered = async {
            let mut line = DriverConnection(&mut inner);
            let opened = line.ask(text, &values).await.map_err(TransactionFault::before_commit)?;
            unit::enter(&mut line, arrival, opened).await
        };
        match entered.await {
            Ok(Ok(carried)) => {
                let Carried { last, held, .. } = carried;
                let purpose = TransactionPurpose::Message(carried);
                let events = EmittedEvents::none(&self.log, salt);
                let transaction = Transaction { inner, purpose, events };
                Ok(MessageEntered::First(First { transaction, last, held }))
            }
            Ok(Err(answer)) => {
                roll_back(inner).await;
                Ok(MessageEntered::Answer(answer))
            }
            Err(error) => {
                roll_back(inner).await;
                Err(error)
            }
        }
    }

    async fn leave(
        &self,
        mut transaction: Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        let written = async {
            let TransactionPurpose::Message(carried) = &transaction.purpose else {
                return Err(StoreError::unavailable("the transaction is an operation's").into());
            };
            unit::leave(&mut DriverConnection(&mut transaction.inner), carried, end).await?;
            let session = &mut DriverConnection(&mut transaction.inner);
            transaction.events.publish(session).await.map_err(TransactionFault::before_commit)
        };
        if let Err(error) = written.await {
            roll_back(transaction.inner).await;
            return Err(error);
        }
        transaction.commit().await
    }

    async fn take_back(&self, transaction: Transaction) {
        self.roll_back(transaction).await;
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        let gone = |error: &sqlx::Error| match error.as_database_error() {
            Some(error) => error.code().is_some_and(|code| is_gone(&code)),
            None => matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed),
        };
        self.is_conflict(error) || error.downcast_ref::<sqlx::Error>().is_some_and(gone)
    }

    async fn missed(&self, consumer: &RegisteredConsumer, id: &Key) -> Result<u32, StoreError> {
        tables::missed(&mut DriverConnection(&mut *self.session().await?), consumer, id).await
    }

    async fn bury(&self, consumer: &RegisteredConsumer, letter: &Letter) -> Result<(), StoreError> {
        tables::bury(&mut DriverConnection(&mut *self.session().await?), consumer, letter).await
    }

    async fn take(
        &self,
        consumer: &RegisteredConsumer,
        partition: &Partition,
    ) -> Result<Taken, StoreError> {
        tables::take(&mut DriverConnection(&mut *self.session().await?), consumer, partition).await
    }

    async fn waiting(
        &self,
        consumer: &RegisteredConsumer,
        waiting: &Waiting,
    ) -> Result<Vec<Arc<Message>>, StoreError> {
        tables::waiting(&mut DriverConnection(&mut *self.session().await?), consumer, waiting).await
    }

    async fn forget(&self, limit: usize) -> Result<usize, StoreError> {
        tables::forget(&mut DriverConnection(&mut *self.session().await?), limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        tables::clock(&mut DriverConnection(&mut *self.session().await?)).await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        tables::keep_clock(&mut DriverConnection(&mut *self.session().await?), mark).await
    }
}

impl Database {
    async fn session(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        self.pool.acquire().await.map_err(StoreError::unavailable)
    }
}

impl SqlSession for DriverConnection<'_> {
    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Cell],
    ) -> Result<Vec<Cells>, TransactionFault> {
        let mut query = sqlx::query(text);
        for value in values {
            query = match value {
                Cell::Number(number) => query.bind(*number),
                Cell::Text(text) => query.bind(text.clone()),
                Cell::Bytes(bytes) => query.bind(bytes.clone()),
            };
        }
        let connection: &mut PgConnection = self.0;
        let rows = query.fetch_all(connection).await?;
        rows.iter().map(cells).collect()
    }
}

fn cells(row: &PgRow) -> Result<Cells, TransactionFault> {
    let cell = |(at, column): (usize, &sqlx::postgres::PgColumn)| {
        Ok(match column.type_info().name() {
            "INT8" => Cell::Number(row.try_get(at)?),
            "BYTEA" => Cell::Bytes(row.try_get(at)?),
            _ => Cell::Text(row.try_get(at)?),
        })
    };
    row.columns().iter().enumerate().map(cell).collect::<Result<_, TransactionFault>>().map(Cells)
}
