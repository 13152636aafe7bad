//! The admin side, through its router.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "these are tests: what they did not expect ends them"
)]

mod changes;
mod figures;
mod health;
mod metrics;
mod oidc;
mod operations;
mod outbox;
mod pages;
mod quarantine;
mod sessions;
mod tokens;
pub(crate) mod world;
