//! A message at the door of a transaction.

use std::sync::Arc;

use super::{
    contract::RegisteredConsumer, kept_message::KeptMessage, letter::Letter, message::Message,
};
use crate::record::Fence;

/// A message at the door of a transaction.
#[derive(Debug, Clone)]
pub struct MessageArrival {
    /// Whose message it is.
    pub consumer: RegisteredConsumer,
    /// The message.
    pub message: Arc<Message>,
    /// What shows whether it was acted on before.
    pub proof: Proof,
    /// Whether it has to be its turn: what its key has come to is then told, and kept until the end.
    pub in_turn: bool,
}

/// What shows whether a message was acted on before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// A record of its own, found by its name.
    Record,
    /// How far its partition has come, which this owner took under this fence.
    Place(Fence),
    /// That it is still held for its turn.
    Held,
}

/// What came of a message at the door.
#[derive(Debug)]
pub enum MessageEntered<T> {
    /// Act on it in this transaction.
    First(First<T>),
    /// Do not: this is why.
    Answer(MessageAnswer),
}

/// The right to act on a message.
#[derive(Debug)]
pub struct First<T> {
    /// The transaction.
    pub transaction: T,
    /// What the message's key has come to, where that was asked for and is known.
    pub last: Option<i64>,
    /// How many messages of its key are held, where that was asked for.
    pub held: u32,
}

/// Why a message is not acted on now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageAnswer {
    /// It was acted on, or put aside for good or for its turn: it is final.
    Duplicate,
    /// It failed for good, for this reason: it is final.
    Failed(String),
    /// Its name was used for other content.
    Conflict,
    /// Another delivery of it, or another message of its key, is being acted on.
    Busy,
    /// Somebody else has taken its partition.
    Fenced,
}

/// How a transaction ends that acted on a message: only what is worth a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageEnd {
    /// It was acted on. Its key has come to its version, if it was in turn.
    Done,
    /// It is older than what its key has come to: nothing is to be done about it.
    Passed,
    /// It has to wait for its turn: it is kept like this, and its delivery is final.
    Held(KeptMessage),
    /// It failed for good; its key has come to its version nevertheless.
    Failed(String),
    /// The same, and this is kept among the dead letters.
    Dead(Letter),
}

impl MessageEnd {
    /// Whether the key of a message has come to its version with this.
    pub fn moves_on(&self) -> bool {
        match self {
            Self::Done | Self::Failed(_) | Self::Dead(_) => true,
            Self::Passed | Self::Held(_) => false,
        }
    }
}
