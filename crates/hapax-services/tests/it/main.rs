//! Real servers, started and stopped.

mod broker;
mod kafka;
mod nats;
mod pgbouncer;
mod postgres;
mod process;
mod rabbitmq;
mod roster;
mod sqs;
