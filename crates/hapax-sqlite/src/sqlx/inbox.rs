//! The inbox of an `sqlx` pool.

use std::{error::Error, sync::Arc};

use hapax_core::{
    StoreError, TransactionError,
    inbox::{First, Inbox, MessageAnswer, MessageArrival, MessageEnd, MessageEntered},
    transaction::Database as _,
};
use hapax_sql::inbox::{ForMessages, InboxContext, unit};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};

use super::{
    database::Database,
    error::{commit_failed, is_busy, nothing_written},
    transaction::{CleanConnection, Transaction},
};
use crate::inbox::statements::STATEMENTS;

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
        self.salt().await?;
        self.hold().await
    }

    fn context(&self) -> InboxContext {
        InboxContext { statements: &STATEMENTS, now: Some(self.clock.now()), salt: None }
    }
}
