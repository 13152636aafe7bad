//! The service on a real PostgreSQL, and an ordinary HTTP client that retries.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests: what they did not expect ends them"
)]

mod answers;
mod clients;
mod failing;
mod in_flight;
mod kills;
mod leaving;
mod once;
mod page;
mod postgres;
mod reruns;
mod restarts;
mod shop;
