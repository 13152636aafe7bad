//! Every source against the real broker: the suite for all of them, and what is each one's own.

#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "sqs")]
mod sqs;
mod suite;
