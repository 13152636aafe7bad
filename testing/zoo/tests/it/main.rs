//! Every species keeps the contract, each fault is there, and where there is none, none shows.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

mod client;
mod contract;
mod demonstrations;
mod program;
mod shape;
