//! The programs that every SDK has for its tests, as `sdk/conformance.md` describes them.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "what a test did not expect ends it, and what it leaves out it says"
)]

mod agent;
mod http;
mod proxy;
mod sdk;

pub use self::{
    agent::Agent,
    http::HttpReply,
    proxy::{KillPoint, Proxy},
    sdk::Sdk,
};
