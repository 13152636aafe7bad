//! Real crashes on real stores, and whether broken promises are noticed.
#![expect(clippy::unwrap_used, reason = "in a test, what was not expected ends it")]

mod broken;
mod check;
mod client;
mod crashes;
mod messaging;
mod steps;
