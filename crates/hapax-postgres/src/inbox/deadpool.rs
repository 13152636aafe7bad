//! The inbox on a deadpool of tokio-postgres connections.

use std::{error::Error, sync::Arc, time::Duration};

use hapax_core::{
    Key, Scope, StoreError, TransactionError,
    clock::{ClockMark, ClockReading},
    inbox::{
        Arrival, Consumer, End, Entered, First, Inbox, Letter, Message, Partition, Taken, Waiting,
    },
    transaction::Database as _,
};
use tokio_postgres::types::{ToSql, Type};

use super::{
    books,
    cell::{Cell, Cells},
    desk::Desk,
    unit::{self, Carried},
};
use crate::transaction::{
    begin_statement,
    deadpool::{Database, Transaction, line::Line},
    error::{Fault, is_gone},
    events::Events,
    unit::Purpose,
};

impl Inbox for Database {
    type Transaction = Transaction;

    async fn enlist(&self, name: &Scope, retention: Duration) -> Result<Consumer, StoreError> {
        books::enlist(&mut self.desk().await?, name, retention).await
    }

    async fn enter(&self, arrival: &Arrival) -> Result<Entered<Transaction>, TransactionError> {
        let (text, values) = unit::opening(arrival)?;
        let mut line = Line(self.connection().await?);
        let entered = async {
            let opened = line.open_with(begin_statement(self.isolation), text, &values).await;
            unit::enter(&mut line, arrival, opened.map_err(Fault::before_commit)?).await
        };
        match entered.await {
            Ok(Ok(carried)) => {
                let Carried { last, held, .. } = carried;
                let purpose = Purpose::Message(carried);
                let transaction = Transaction {
                    line: Some(line),
                    purpose,
                    events: Events::ringing(&self.ringer),
                };
                Ok(Entered::First(First { transaction, last, held }))
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

    async fn leave(&self, mut transaction: Transaction, end: &End) -> Result<(), TransactionError> {
        let Some(mut line) = transaction.line.take() else { return Ok(()) };
        let written = async {
            let Purpose::Message(carried) = &transaction.purpose else {
                return Err(StoreError::unavailable("the transaction is an operation's").into());
            };
            unit::leave(&mut line, carried, end).await?;
            line.publish(&mut transaction.events).await.map_err(Fault::before_commit)
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
                Err(Fault::from(error).of_commit())
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

    async fn missed(&self, consumer: &Consumer, id: &Key) -> Result<u32, StoreError> {
        books::missed(&mut self.desk().await?, consumer, id).await
    }

    async fn bury(&self, consumer: &Consumer, letter: &Letter) -> Result<(), StoreError> {
        books::bury(&mut self.desk().await?, consumer, letter).await
    }

    async fn take(&self, consumer: &Consumer, partition: &Partition) -> Result<Taken, StoreError> {
        books::take(&mut self.desk().await?, consumer, partition).await
    }

    async fn waiting(
        &self,
        consumer: &Consumer,
        waiting: &Waiting,
    ) -> Result<Vec<Arc<Message>>, StoreError> {
        books::waiting(&mut self.desk().await?, consumer, waiting).await
    }

    async fn forget(&self, limit: usize) -> Result<usize, StoreError> {
        books::forget(&mut self.desk().await?, limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        books::clock(&mut self.desk().await?).await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        books::keep_clock(&mut self.desk().await?, mark).await
    }
}

impl Database {
    async fn desk(&self) -> Result<Line, StoreError> {
        match self.connection().await {
            Ok(connection) => Ok(Line(connection)),
            Err(TransactionError::Conflict(cause)) => Err(StoreError::Unavailable(cause)),
            Err(TransactionError::Store(error)) => Err(error),
        }
    }
}

impl Line {
    /// Begins, and runs the first statement, in one round trip.
    async fn open_with(
        &mut self,
        begin: &'static str,
        text: &'static str,
        values: &[Cell],
    ) -> Result<Vec<Cells>, Fault> {
        let statement = self.0.prepare_cached(text).await?;
        let params = params(values);
        let (begun, rows) =
            tokio::join!(self.0.batch_execute(begin), self.0.query(&statement, &params));
        begun?;
        rows?.iter().map(cells).collect()
    }
}

impl Desk for Line {
    async fn ask(&mut self, text: &'static str, values: &[Cell]) -> Result<Vec<Cells>, Fault> {
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

fn cells(row: &tokio_postgres::Row) -> Result<Cells, Fault> {
    let cell = |(at, column): (usize, &tokio_postgres::Column)| {
        Ok(match *column.type_() {
            Type::INT8 => Cell::Number(row.try_get(at)?),
            Type::BYTEA => Cell::Bytes(row.try_get(at)?),
            _ => Cell::Text(row.try_get(at)?),
        })
    };
    row.columns().iter().enumerate().map(cell).collect::<Result<_, Fault>>().map(Cells)
}
