//! The inbox on a deadpool of tokio-postgres connections.

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
use tokio_postgres::types::{ToSql, Type};

use super::{
    cell::{Cell, Cells},
    sql_session::SqlSession,
    tables,
    unit::{self, Carried},
};
use crate::transaction::{
    begin_statement,
    deadpool::{Database, Transaction, pooled_connection::PooledConnection},
    error::{TransactionFault, is_gone},
    events::EmittedEvents,
    unit::TransactionPurpose,
};

impl Inbox for Database {
    type Transaction = Transaction;

    async fn enlist(
        &self,
        name: &Scope,
        retention: Duration,
    ) -> Result<RegisteredConsumer, StoreError> {
        tables::enlist(&mut self.session().await?, name, retention).await
    }

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Transaction>, TransactionError> {
        let (text, values) = unit::opening(arrival)?;
        let mut line = PooledConnection(self.connection().await?);
        let salt = self.salt_on(&mut line).await?;
        let entered = async {
            let opened = line.open_with(begin_statement(self.isolation), text, &values).await;
            unit::enter(&mut line, arrival, opened.map_err(TransactionFault::before_commit)?).await
        };
        match entered.await {
            Ok(Ok(carried)) => {
                let Carried { last, held, .. } = carried;
                let purpose = TransactionPurpose::Message(carried);
                let transaction = Transaction {
                    line: Some(line),
                    purpose,
                    events: EmittedEvents::none(&self.log, salt),
                };
                Ok(MessageEntered::First(First { transaction, last, held }))
            }
            Ok(Err(answer)) => {
                line.roll_back().await;
                Ok(MessageEntered::Answer(answer))
            }
            Err(error) => {
                line.roll_back().await;
                Err(error)
            }
        }
    }

    async fn leave(
        &self,
        mut transaction: Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        let Some(mut line) = transaction.line.take() else { return Ok(()) };
        let written = async {
            let TransactionPurpose::Message(carried) = &transaction.purpose else {
                return Err(StoreError::unavailable("the transaction is an operation's").into());
            };
            unit::leave(&mut line, carried, end).await?;
            transaction.events.publish(&mut line).await.map_err(TransactionFault::before_commit)
        };
        if let Err(error) = written.await {
            line.roll_back().await;
            return Err(error);
        }
        match line.0.batch_execute("COMMIT").await {
            Ok(()) => {
                transaction.events.committed();
                Ok(())
            }
            Err(error) => {
                line.close();
                Err(TransactionFault::from(error).of_commit())
            }
        }
    }

    async fn take_back(&self, transaction: Transaction) {
        self.roll_back(transaction).await;
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        let gone = |error: &tokio_postgres::Error| {
            error.is_closed() || error.code().is_some_and(|code| is_gone(code.code()))
        };
        self.is_conflict(error) || error.downcast_ref::<tokio_postgres::Error>().is_some_and(gone)
    }

    async fn missed(&self, consumer: &RegisteredConsumer, id: &Key) -> Result<u32, StoreError> {
        tables::missed(&mut self.session().await?, consumer, id).await
    }

    async fn bury(&self, consumer: &RegisteredConsumer, letter: &Letter) -> Result<(), StoreError> {
        tables::bury(&mut self.session().await?, consumer, letter).await
    }

    async fn take(
        &self,
        consumer: &RegisteredConsumer,
        partition: &Partition,
    ) -> Result<Taken, StoreError> {
        tables::take(&mut self.session().await?, consumer, partition).await
    }

    async fn waiting(
        &self,
        consumer: &RegisteredConsumer,
        waiting: &Waiting,
    ) -> Result<Vec<Arc<Message>>, StoreError> {
        tables::waiting(&mut self.session().await?, consumer, waiting).await
    }

    async fn forget(&self, limit: usize) -> Result<usize, StoreError> {
        tables::forget(&mut self.session().await?, limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        tables::clock(&mut self.session().await?).await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        tables::keep_clock(&mut self.session().await?, mark).await
    }
}

impl Database {
    async fn session(&self) -> Result<PooledConnection, StoreError> {
        match self.connection().await {
            Ok(connection) => Ok(PooledConnection(connection)),
            Err(TransactionError::Conflict(cause) | TransactionError::Taken(cause)) => {
                Err(StoreError::Unavailable(cause))
            }
            Err(TransactionError::Store(error)) => Err(error),
        }
    }
}

impl PooledConnection {
    /// Begins, and runs the first statement, in one round trip.
    async fn open_with(
        &mut self,
        begin: &'static str,
        text: &'static str,
        values: &[Cell],
    ) -> Result<Vec<Cells>, TransactionFault> {
        let statement = self.0.prepare_cached(text).await?;
        let params = params(values);
        let (begun, rows) =
            tokio::join!(self.0.batch_execute(begin), self.0.query(&statement, &params));
        begun?;
        rows?.iter().map(cells).collect()
    }
}

impl SqlSession for PooledConnection {
    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Cell],
    ) -> Result<Vec<Cells>, TransactionFault> {
        let statement = self.0.prepare_cached(text).await?;
        let rows = self.0.query(&statement, &params(values)).await?;
        rows.iter().map(cells).collect()
    }
}

fn params(values: &[Cell]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(param).collect()
}

fn param(value: &Cell) -> &(dyn ToSql + Sync) {
    match value {
        Cell::Number(number) => number,
        Cell::Text(text) => text,
        Cell::Bytes(bytes) => bytes,
    }
}

fn cells(row: &tokio_postgres::Row) -> Result<Cells, TransactionFault> {
    let cell = |(at, column): (usize, &tokio_postgres::Column)| {
        Ok(match *column.type_() {
            Type::INT8 => Cell::Number(row.try_get(at)?),
            Type::BYTEA => Cell::Bytes(row.try_get(at)?),
            _ => Cell::Text(row.try_get(at)?),
        })
    };
    row.columns().iter().enumerate().map(cell).collect::<Result<_, TransactionFault>>().map(Cells)
}
