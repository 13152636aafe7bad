//! Messages that are delivered at least once, and acted on once: what is kept of them, and what
//! that means for the next delivery.
//!
//! - `message`: [`Message`], what was delivered; `place`: [`Place`], where it stands in a log;
//! - `arrival`: a message at the door of a transaction, and how that transaction ends;
//! - `judge`: what a record means for a delivery, and when it is a message's turn;
//! - `contract`: [`Inbox`], what a database does; `kept_message`: a message that is held or put aside;
//!   `letter`: what could not be acted on;
//! - `admin`: [`InboxAdmin`], what it does for operators;
//! - `headers`: how headers become bytes.
//!
//! A backend states facts and writes what it is told. Every decision is made in `judge`.

mod admin;
mod arrival;
mod contract;
mod headers;
mod judge;
mod kept_message;
mod letter;
mod message;
mod place;

pub use self::{
    admin::{
        BoundedCount, CONSUMER_TENANT, ConsumerName, ConsumerSummary, HeldKey, InboxAdmin,
        LetterContent, LetterId, NextDelivery, PartitionProgress, RetriedMessage, RetriedPage,
        StoredLetter,
    },
    arrival::{First, MessageAnswer, MessageArrival, MessageEnd, MessageEntered, Proof},
    contract::{Inbox, RegisteredConsumer, Taken, Waiting},
    headers::{decode_headers, encode_headers},
    judge::{Guard, Judgement, MessageState, StoredMessage, Turn, judge, turn},
    kept_message::KeptMessage,
    letter::{Letter, LetterReason},
    message::{Digest, Identity, Message},
    place::{Partition, Place},
};
