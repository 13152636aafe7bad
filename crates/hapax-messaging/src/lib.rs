//! Publishes what was committed, in order per key, and lets consumers act on it once.
//!
//! - [`audit`]: whether all of that went as it should;
//! - [`consumer`]: what acts on messages once, in a database's transaction;
//! - [`sink`]: where events are sent;
//! - [`source`]: where messages come from;
//! - [`relay`]: what sends them, from an [`OutboxLog`](hapax_core::outbox::OutboxLog) to a sink.
//!
//! No backend is named here: a relay runs on any outbox.

pub mod audit;
pub mod consumer;
#[cfg(any(feature = "sqs", feature = "webhook"))]
mod https;
pub mod relay;
pub mod sink;
pub mod source;
#[cfg(feature = "sqs")]
pub mod sqs;
