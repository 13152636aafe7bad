//! The inbox on a sqlx pool.

use std::{error::Error, sync::Arc, time::Duration};

use hapax_core::{
    Key, Scope, StoreError, TransactionError,
    clock::{ClockMark, ClockReading},
    inbox::{
        Arrival, Consumer, End, Entered, First, Inbox, Letter, Message, Partition, Taken, Waiting,
    },
    transaction::Database as _,
};
use sqlx::{
    Column as _, PgConnection, Postgres, Row as _, TypeInfo as _, pool::PoolConnection,
    postgres::PgRow,
};

use super::{
    books,
    cell::{Cell, Cells},
    desk::Desk,
    unit::{self, Carried},
};
use crate::transaction::{
    begin_statement,
    error::{Fault, is_gone},
    events::Events,
    sqlx::{Database, Line, Transaction, publish, roll_back},
    unit::Purpose,
};

impl Inbox for Database {
    type Transaction = Transaction;

    async fn enlist(&self, name: &Scope, retention: Duration) -> Result<Consumer, StoreError> {
        books::enlist(&mut Line(&mut *self.desk().await?), name, retention).await
    }

    async fn enter(&self, arrival: &Arrival) -> Result<Entered<Transaction>, TransactionError> {
        let (text, values) = unit::opening(arrival)?;
        let begun = self.pool.begin_with(begin_statement(self.isolation)).await;
        let mut inner = begun.map_err(|error| Fault::from(error).before_commit())?;
        let entered = async {
            let mut line = Line(&mut inner);
            let opened = line.ask(text, &values).await.map_err(Fault::before_commit)?;
            unit::enter(&mut line, arrival, opened).await
        };
        match entered.await {
            Ok(Ok(carried)) => {
                let Carried { last, held, .. } = carried;
                let purpose = Purpose::Message(carried);
                let transaction =
                    Transaction { inner, purpose, events: Events::ringing(&self.ringer) };
                Ok(Entered::First(First { transaction, last, held }))
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

    async fn leave(&self, mut transaction: Transaction, end: &End) -> Result<(), TransactionError> {
        let written = async {
            let Purpose::Message(carried) = &transaction.purpose else {
                return Err(StoreError::unavailable("the transaction is an operation's").into());
            };
            unit::leave(&mut Line(&mut transaction.inner), carried, end).await?;
            let published = publish(&mut transaction.inner, &mut transaction.events).await;
            published.map_err(Fault::before_commit)
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

    async fn missed(&self, consumer: &Consumer, id: &Key) -> Result<u32, StoreError> {
        books::missed(&mut Line(&mut *self.desk().await?), consumer, id).await
    }

    async fn bury(&self, consumer: &Consumer, letter: &Letter) -> Result<(), StoreError> {
        books::bury(&mut Line(&mut *self.desk().await?), consumer, letter).await
    }

    async fn take(&self, consumer: &Consumer, partition: &Partition) -> Result<Taken, StoreError> {
        books::take(&mut Line(&mut *self.desk().await?), consumer, partition).await
    }

    async fn waiting(
        &self,
        consumer: &Consumer,
        waiting: &Waiting,
    ) -> Result<Vec<Arc<Message>>, StoreError> {
        books::waiting(&mut Line(&mut *self.desk().await?), consumer, waiting).await
    }

    async fn forget(&self, limit: usize) -> Result<usize, StoreError> {
        books::forget(&mut Line(&mut *self.desk().await?), limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        books::clock(&mut Line(&mut *self.desk().await?)).await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        books::keep_clock(&mut Line(&mut *self.desk().await?), mark).await
    }
}

impl Database {
    async fn desk(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        self.pool.acquire().await.map_err(StoreError::unavailable)
    }
}

impl Desk for Line<'_> {
    async fn ask(&mut self, text: &'static str, values: &[Cell]) -> Result<Vec<Cells>, Fault> {
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

fn cells(row: &PgRow) -> Result<Cells, Fault> {
    let cell = |(at, column): (usize, &sqlx::postgres::PgColumn)| {
        Ok(match column.type_info().name() {
            "INT8" => Cell::Number(row.try_get(at)?),
            "BYTEA" => Cell::Bytes(row.try_get(at)?),
            _ => Cell::Text(row.try_get(at)?),
        })
    };
    row.columns().iter().enumerate().map(cell).collect::<Result<_, Fault>>().map(Cells)
}
