//! What a database does for a consumer.

use std::{error::Error, sync::Arc, time::Duration};

use super::{
    arrival::{MessageArrival, MessageEnd, MessageEntered},
    letter::Letter,
    message::Message,
    place::Partition,
};
use crate::{
    clock::{ClockMark, ClockReading},
    operation::{Key, Scope},
    record::Fence,
    store::StoreError,
    transaction::TransactionError,
};

/// A database that keeps what became of a message and the handler's own writes in one transaction.
///
/// Proven by `hapax_verify::conformance::inbox`. A commit that was not confirmed needs no asking: the
/// message is delivered again, and what is stored answers it. None of the calls is ever dropped
/// half-way: whoever drives it runs in a task of its own.
pub trait Inbox: Clone + Send + Sync + 'static {
    /// A transaction that acts on a message. Dropped without an end, it is rolled back; a connection
    /// with an open transaction never returns to a pool.
    type Transaction: Send + 'static;

    /// Makes a consumer known, and sets for how long what became of its messages is remembered.
    fn enlist(
        &self,
        name: &Scope,
        retention: Duration,
    ) -> impl Future<Output = Result<RegisteredConsumer, StoreError>> + Send;

    /// Begins a transaction for a message, if nobody has acted on it. Never waits for another
    /// delivery of it.
    fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> impl Future<Output = Result<MessageEntered<Self::Transaction>, TransactionError>> + Send;

    /// Begins one transaction for several messages of one consumer, if nobody has acted on any of
    /// them; `None` if somebody has, is at one of them, or if these cannot be taken together: nothing
    /// is written then, and each is to be [entered](Self::enter) alone. Never waits for another
    /// delivery.
    ///
    /// Taken together are messages that have [records](super::Proof::Record), or that follow each other in one
    /// partition; not those that have to be in turn.
    fn enter_all(
        &self,
        arrivals: &[MessageArrival],
    ) -> impl Future<Output = Result<Option<Self::Transaction>, TransactionError>> + Send;

    /// Writes how it ended, for all messages of the transaction alike, and commits.
    fn leave(
        &self,
        transaction: Self::Transaction,
        end: &MessageEnd,
    ) -> impl Future<Output = Result<(), TransactionError>> + Send;

    /// Takes back everything.
    fn take_back(&self, transaction: Self::Transaction) -> impl Future<Output = ()> + Send;

    /// Whether this error of the handler's own statements means that another transaction was in the
    /// way, or that the database went away: neither is the message's fault.
    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool;

    /// Counts an attempt that failed; how many did so far.
    fn missed(
        &self,
        consumer: &RegisteredConsumer,
        id: &Key,
    ) -> impl Future<Output = Result<u32, StoreError>> + Send;

    /// Keeps a dead letter that has no record of its own; once, however often it is told.
    fn bury(
        &self,
        consumer: &RegisteredConsumer,
        letter: &Letter,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes a partition: whoever had it before can finish nothing more.
    fn take(
        &self,
        consumer: &RegisteredConsumer,
        partition: &Partition,
    ) -> impl Future<Output = Result<Taken, StoreError>> + Send;

    /// Held messages, the lowest of each key, that follow what their key has come to (or `first`
    /// where it has come to nothing yet), or were held longer than `patience`, as far as the clock
    /// is trusted.
    fn waiting(
        &self,
        consumer: &RegisteredConsumer,
        waiting: &Waiting,
    ) -> impl Future<Output = Result<Vec<Arc<Message>>, StoreError>> + Send;

    /// Forgets up to `limit` of what is past its retention, as far as the clock is trusted; how
    /// many. Whatever is held is kept.
    fn forget(&self, limit: usize) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// What the database's clock says, and what was kept of it.
    fn clock(&self) -> impl Future<Output = Result<ClockReading, StoreError>> + Send;

    /// Keeps this of the database's clock durably, in place of what was kept before.
    fn keep_clock(&self, mark: ClockMark) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A consumer, as its database knows it. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredConsumer {
    /// Its number, by which its messages are kept.
    pub number: i32,
    /// Its name.
    pub name: Scope,
    /// For how long what became of a message is remembered.
    pub retention: Duration,
}

/// A partition that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Under which fence.
    pub fence: Fence,
    /// The first offset that was not acted on; `None` where none ever was.
    pub next: Option<i64>,
}

/// Which held messages are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Of this key alone, or of all.
    pub key: Option<String>,
    /// The version a key begins with.
    pub first: i64,
    /// How long a message is held before it is asked for out of turn.
    pub patience: Duration,
    /// At most so many.
    pub limit: usize,
}
