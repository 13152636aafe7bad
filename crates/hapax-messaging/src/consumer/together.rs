//! Several messages in one transaction: enter, act on one after the other, leave. Whatever is in the
//! way of one of them takes everything back, and each is then acted on alone.

use std::sync::Arc;

use hapax_core::{
    StoreError, TransactionError,
    inbox::{Inbox, Message, MessageArrival, MessageEnd},
};

use super::{
    handler::{HandlerError, Tx},
    places::place,
    transactional::TransactionalWorker,
    worker::{Acceptance, DeliveryEnd},
};

impl<I, H, F> TransactionalWorker<I, H, F>
where
    I: Inbox,
    H: Fn(Tx<I::Transaction>, Arc<Message>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), HandlerError>> + Send + 'static,
{
    /// What became of all of them; `None` if each is to be acted on alone.
    ///
    /// Nothing is counted here: who is at fault shows when each is alone.
    pub(super) async fn try_together(&self, messages: &[Acceptance]) -> Option<DeliveryEnd> {
        match self.enter_act_and_leave(messages).await {
            Ok(true) => Some(DeliveryEnd::Final),
            Ok(false) | Err(TransactionError::Conflict(_) | TransactionError::Taken(_)) => None,
            // Where the commit was not confirmed, what is stored answers those that come again.
            Err(TransactionError::Store(error)) => Some(self.outage(&error)),
        }
    }

    /// Whether all of them were acted on.
    async fn enter_act_and_leave(&self, messages: &[Acceptance]) -> Result<bool, TransactionError> {
        self.pass(place::BEFORE_ENTER)?;
        let arrival = |accepted: &Acceptance| MessageArrival {
            consumer: self.consumer.clone(),
            message: Arc::clone(&accepted.message),
            proof: accepted.proof,
            in_turn: self.options.guard.is_some(),
        };
        let arrivals: Vec<_> = messages.iter().map(arrival).collect();
        let Some(mut transaction) = self.inbox.enter_all(&arrivals).await? else {
            return Ok(false);
        };
        if let Err(error) = self.pass(place::AFTER_ENTER) {
            return self.taken_back(transaction, error).await;
        }
        for Acceptance { message, .. } in messages {
            let (returned, answer) = self.handle(message, transaction).await;
            let Some(returned) = returned else { return Ok(false) };
            if let Err(error) = self.pass(place::AFTER_HANDLER) {
                return self.taken_back(returned, error).await;
            }
            if !matches!(answer, Ok(Ok(Ok(())))) {
                self.inbox.take_back(returned).await;
                return Ok(false);
            }
            transaction = returned;
        }
        self.inbox.leave(transaction, &MessageEnd::Done).await?;
        self.pass(place::AFTER_LEAVE)?;
        Ok(true)
    }

    async fn taken_back(
        &self,
        transaction: I::Transaction,
        error: StoreError,
    ) -> Result<bool, TransactionError> {
        self.inbox.take_back(transaction).await;
        Err(error.into())
    }
}
