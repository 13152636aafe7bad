//! Real processes on a real database, killed, hung up on and lied to: everything happens once.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "these are tests: what they did not expect ends them"
)]

mod crowd;
mod deaths;
mod failure_points;
mod process;
mod provider;
mod requests;
mod shop;
mod world;
