//! Real servers, started and stopped.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

mod broker;
mod kafka;
mod nats;
mod pgbouncer;
mod postgres;
mod postgres_versions;
mod process;
mod rabbitmq;
mod redis;
mod roster;
mod sqs;
