//! A small client of Amazon's SQS: what sinks and sources need of it, signed, over HTTPS.
//!
//! - [`Queue`]: one queue, as sinks and sources use it;
//! - `credentials`: [`Credentials`], given or looked for in the usual places;
//! - `wire`: what goes over the wire.

mod credentials;
mod error;
mod queue;
mod wire;

/// The attribute that says how the body was written, where it is not the payload itself.
pub(crate) const ENCODING: &str = "hapax-encoding";
/// Of a payload of no bytes, which SQS does not take; then it is the body, too.
pub(crate) const EMPTY: &str = "empty";
/// The attribute that holds the event's own headers.
pub(crate) const HEADERS: &str = "hapax-headers";

pub use self::{
    credentials::Credentials,
    error::{QueueError, SqsError},
    queue::{Queue, QueueOptions},
};
pub(crate) use self::{
    error::Meaning,
    wire::{
        BatchAnswers, Entries, Handle, MessageAttribute, Nothing, OutgoingMessage, Receive,
        ReceivedMessages, SqsMessage,
    },
};
