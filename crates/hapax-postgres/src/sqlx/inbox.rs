//! The inbox on a sqlx pool.

use std::error::Error;

use hapax_core::{
    Salt, StoreError, TransactionError,
    inbox::{First, Inbox, MessageArrival, MessageEnd, MessageEntered},
    transaction::Database as _,
};
use hapax_sql::{
    TransactionFault,
    inbox::{ForMessages, InboxContext, unit},
};

use super::{
    driver::{self as sqlx, Postgres, pool::PoolConnection},
    session::DriverConnection,
    transaction::{Database, Transaction, roll_back},
};
use crate::{
    inbox::statements::{CONTEXT, context},
    transaction::{error::is_gone, events::EmittedEvents},
};

impl Inbox for Database {
    type Transaction = Transaction<ForMessages>;

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Self::Transaction>, TransactionError> {
        let (salt, mut inner) = (self.salt().await?, self.begun().await?);
        let entered =
            unit::enter(&mut DriverConnection(&mut *inner), context(salt), None, arrival).await;
        Ok(match self.kept(inner, salt, entered).await? {
            Ok(transaction) => MessageEntered::First(First {
                last: transaction.purpose.last(),
                held: transaction.purpose.held(),
                transaction,
            }),
            Err(answer) => MessageEntered::Answer(answer),
        })
    }

    async fn enter_all(
        &self,
        arrivals: &[MessageArrival],
    ) -> Result<Option<Self::Transaction>, TransactionError> {
        let (salt, mut inner) = (self.salt().await?, self.begun().await?);
        let mut line = DriverConnection(&mut *inner);
        let entered = unit::enter_all(&mut line, context(salt), None, arrivals).await;
        Ok(self.kept(inner, salt, entered.map(|entered| entered.ok_or(()))).await?.ok())
    }

    async fn leave(
        &self,
        mut transaction: Self::Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        let written = async {
            let mut line = DriverConnection(&mut *transaction.inner);
            unit::leave(&mut line, CONTEXT, &transaction.purpose, end).await?;
            let published = transaction.events.publish(&mut line).await;
            published.map_err(TransactionFault::before_commit)
        };
        if let Err(error) = written.await {
            roll_back(transaction.inner).await;
            return Err(error);
        }
        transaction.commit().await
    }

    async fn take_back(&self, transaction: Self::Transaction) {
        self.undo_all(transaction).await;
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        let gone = |error: &sqlx::Error| match error.as_database_error() {
            Some(error) => error.code().is_some_and(|code| is_gone(&code)),
            None => matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed),
        };
        self.is_conflict(error) || error.downcast_ref::<sqlx::Error>().is_some_and(gone)
    }

    hapax_sql::inbox_tables!();
}

impl Database {
    /// A transaction for what was entered in this one, or its end.
    async fn kept<A>(
        &self,
        inner: sqlx::Transaction<'static, Postgres>,
        salt: Salt,
        entered: Result<Result<ForMessages, A>, TransactionError>,
    ) -> Result<Result<Transaction<ForMessages>, A>, TransactionError> {
        match entered {
            Ok(Ok(purpose)) => {
                let events = EmittedEvents::none(&self.log, salt);
                Ok(Ok(Transaction { inner, purpose, events }))
            }
            Ok(Err(answer)) => {
                roll_back(inner).await;
                Ok(Err(answer))
            }
            Err(error) => {
                roll_back(inner).await;
                Err(error)
            }
        }
    }

    async fn session(&self) -> Result<DriverConnection<PoolConnection<Postgres>>, StoreError> {
        self.pool.acquire().await.map(DriverConnection).map_err(StoreError::unavailable)
    }

    fn context(&self) -> InboxContext {
        CONTEXT
    }
}
