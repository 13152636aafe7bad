//! Every source against the real broker: the suite for all of them, and what is each one's own.

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "sqs")]
mod sqs;
#[cfg(any(feature = "nats", feature = "rabbitmq", feature = "sqs"))]
mod suite;
