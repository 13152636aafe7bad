//! Relay, sinks and consumers; sinks and consumers against real servers.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests: what they did not expect ends them"
)]

mod audit;
mod consumer;
mod encrypted;
mod relay;
#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "sqs"))]
mod servers;
mod sink;
#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "sqs"))]
mod source;
#[cfg(feature = "sqs")]
mod sqs;
