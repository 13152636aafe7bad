//! The inbox on a deadpool of tokio-postgres connections.

use std::error::Error;

use hapax_core::{
    Salt, StoreError, TransactionError,
    inbox::{First, Inbox, MessageArrival, MessageEnd, MessageEntered},
    transaction::Database as _,
};
use hapax_sql::{
    Session as _, TransactionFault,
    inbox::{ForMessages, InboxContext, unit},
};

use super::statements::{CONTEXT, context};
use crate::transaction::{
    begin_statement,
    deadpool::{Database, Transaction, pooled_connection::PooledConnection},
    error::is_gone,
    events::EmittedEvents,
};

impl Inbox for Database {
    type Transaction = Transaction<ForMessages>;

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Self::Transaction>, TransactionError> {
        let mut line = PooledConnection(self.connection().await?);
        let salt = self.salt_on(&mut line).await?;
        let begin = Some(begin_statement(self.isolation));
        let entered = unit::enter(&mut line, context(salt), begin, arrival).await;
        Ok(match self.kept(line, salt, entered).await? {
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
        let mut line = PooledConnection(self.connection().await?);
        let salt = self.salt_on(&mut line).await?;
        let begin = Some(begin_statement(self.isolation));
        let entered = unit::enter_all(&mut line, context(salt), begin, arrivals).await;
        Ok(self.kept(line, salt, entered.map(|entered| entered.ok_or(()))).await?.ok())
    }

    async fn leave(
        &self,
        mut transaction: Self::Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        let Some(mut line) = transaction.line.take() else { return Ok(()) };
        let written = async {
            unit::leave(&mut line, CONTEXT, &transaction.purpose, end).await?;
            let published = transaction.events.publish(&mut line).await;
            published.map_err(TransactionFault::before_commit)
        };
        if let Err(error) = written.await {
            line.roll_back().await;
            return Err(error);
        }
        match line.ask("COMMIT", &[]).await {
            Ok(_) => {
                transaction.events.committed();
                Ok(())
            }
            Err(fault) => {
                line.close();
                Err(fault.of_commit())
            }
        }
    }

    async fn take_back(&self, transaction: Self::Transaction) {
        self.undo_all(transaction).await;
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        let gone = |error: &tokio_postgres::Error| {
            error.is_closed() || error.code().is_some_and(|code| is_gone(code.code()))
        };
        self.is_conflict(error) || error.downcast_ref::<tokio_postgres::Error>().is_some_and(gone)
    }

    hapax_sql::inbox_tables!();
}

impl Database {
    /// A transaction for what was entered on this connection, or the connection given back.
    async fn kept<A>(
        &self,
        line: PooledConnection,
        salt: Salt,
        entered: Result<Result<ForMessages, A>, TransactionError>,
    ) -> Result<Result<Transaction<ForMessages>, A>, TransactionError> {
        match entered {
            Ok(Ok(purpose)) => {
                let events = EmittedEvents::none(&self.log, salt);
                Ok(Ok(Transaction { line: Some(line), purpose, events }))
            }
            Ok(Err(answer)) => {
                line.roll_back().await;
                Ok(Err(answer))
            }
            Err(error) => {
                line.roll_back().await;
                Err(error)
            }
        }
    }

    async fn session(&self) -> Result<PooledConnection, StoreError> {
        Ok(PooledConnection(self.connection().await?))
    }

    fn context(&self) -> InboxContext {
        CONTEXT
    }
}
