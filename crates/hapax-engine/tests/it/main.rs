//! The engine, through its public door, on the memory store, in virtual time.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "these are tests: what they did not expect ends them"
)]

mod batching;
mod caching;
mod clock;
mod faults;
mod forgetting;
mod history;
mod operator;
mod permits;
mod recovery;
mod steps;
mod steps_losses;
mod steps_workflows;
mod waiting;
mod world;
