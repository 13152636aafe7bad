//! Where messages come from: brokers, each with the feature of its name.
//!
//! All of them are [`Source`](crate::consumer::Source)s: they deliver at least once, and a
//! [consumer](crate::consumer) makes one effect of it.

#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
#[cfg(feature = "sqs")]
pub mod sqs;
