//! The client through its public door.
#![expect(clippy::expect_used, clippy::panic, reason = "in a test, what was not expected ends it")]

mod credentials;
mod faults;
mod journal;
mod misbehaving;
mod named;
mod outage;
mod plain;
mod protected;
mod raw;
mod resume;
mod server;
mod together;
mod windows;
