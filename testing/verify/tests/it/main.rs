//! The suite against the reference store, and the judges against seeded faults.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

mod checker;
mod memory;
mod model;
mod outbox;
mod outbox_model;
mod sim;
mod suite;
