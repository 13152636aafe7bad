//! Every sink against the real place: the suite for all of them, and what is each one's own.
#![cfg_attr(
    not(all(feature = "kafka", feature = "nats", feature = "webhook")),
    allow(dead_code, unused_macros, reason = "how much is used depends on the features")
)]

#[cfg(feature = "kafka")]
pub(crate) mod kafka;
mod lines;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "sqs")]
mod sqs;
mod suite;
#[cfg(feature = "webhook")]
mod webhook;
pub(crate) mod world;
