//! What is done with one message.

use std::{sync::Arc, time::Duration};

use hapax_core::{
    StoreError,
    inbox::{LetterReason, Message, Partition, Proof, Taken},
};

/// Acts on messages, and keeps what became of them.
///
/// There are two: in a transaction of the consumer's database, and through the leased machine.
pub(super) trait Worker: Send + Sync + 'static {
    /// Makes the consumer known; before anything else.
    fn open(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Acts on a message, unless that was done before.
    fn act(&self, message: Arc<Message>, proof: Proof) -> impl Future<Output = DeliveryEnd> + Send;

    /// Acts on several messages in one transaction, in this order; what became of all of them alike.
    /// `None` if nothing is to be said of all: nothing was done, and each is to be acted on alone.
    fn act_together(
        &self,
        messages: &[Acceptance],
    ) -> impl Future<Output = Option<DeliveryEnd>> + Send;

    /// Puts a message aside that cannot be acted on at all.
    fn put_aside(
        &self,
        message: Arc<Message>,
        reason: LetterReason,
    ) -> impl Future<Output = DeliveryEnd> + Send;

    /// Takes a partition whose progress is kept with the effects.
    fn take(&self, partition: &Partition)
    -> impl Future<Output = Result<Taken, StoreError>> + Send;

    /// Looks after what nobody delivers.
    fn patrol(&self) -> impl Future<Output = ()> + Send;
}

/// A message to be acted on, and what shows whether it was before.
#[derive(Debug, Clone)]
pub(super) struct Acceptance {
    pub(super) message: Arc<Message>,
    pub(super) proof: Proof,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryEnd {
    /// The message is final.
    Final,
    /// It is to come again, after about this long.
    Again(Duration),
    /// Somebody else has its partition.
    Fenced,
}
