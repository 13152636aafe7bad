//! The machine through its public door: every decision, write, bound and stored byte.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

mod apply;
mod clock;
mod codec;
mod decide;
mod error_chain;
mod fault;
mod fingerprint;
mod given;
mod incarnation;
mod memory;
mod note;
mod operation;
mod outbox;
mod outcome;
mod policy;
mod record;
mod retry;
mod settle;
mod store;
mod time;
mod transaction;
