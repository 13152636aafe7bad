//! Outboxes, sinks and sources with places to die before and after every call.

mod outbox;
mod sink;
mod source;

pub use self::{
    outbox::WatchedOutbox,
    sink::{SinkManners, WatchedSink},
    source::{WatchedReceipt, WatchedSource},
};

/// The places around the calls of a relay.
pub const RELAY_PLACES: &[&str] = &[
    "outbox.register.before",
    "outbox.register.after",
    "outbox.lease.before",
    "outbox.lease.after",
    "outbox.look.before",
    "outbox.look.after",
    "sink.send.before",
    "sink.send.after",
    "outbox.acknowledge.before",
    "outbox.acknowledge.after",
    "outbox.park.before",
    "outbox.park.after",
    "outbox.release.before",
    "outbox.release.after",
    "outbox.leave.before",
    "outbox.leave.after",
    "outbox.retire.before",
    "outbox.retire.after",
];

/// The places around a call that relays make only where transactions overtake each other.
pub const WRITERS_PLACES: &[&str] = &["outbox.writers.before", "outbox.writers.after"];

/// The places around the calls of a consumer, besides its own.
pub const CONSUMER_PLACES: &[&str] = &[
    "source.next.before",
    "source.next.after",
    "receipt.settle.before",
    "receipt.settle.after",
    "effect.before",
    "effect.after",
];
