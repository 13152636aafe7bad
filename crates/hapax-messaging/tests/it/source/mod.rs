//! Every source against the real broker: the suite for all of them, and what is each one's own.
#![cfg_attr(
    not(all(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "sqs")),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "how much is used depends on the features"
    )
)]

mod effects;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "sqs")]
mod sqs;
mod suite;
