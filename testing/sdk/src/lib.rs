//! The programs that every SDK has for its tests, as `sdk/conformance.md` describes them.

mod agent;
mod proxy;
mod sdk;

pub use self::{
    agent::Agent,
    proxy::{Cut, Proxy},
    sdk::Sdk,
};
