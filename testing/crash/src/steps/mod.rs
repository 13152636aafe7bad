//! The same for operations of several effects: killed between any two lines, each effect once.
//!
//! - [`victim`]: a process that runs workflows of four steps, until it dies;
//! - [`ledger`]: where their effects happen, outside of the store;
//! - [`StepsHunt`]: kills one victim after the other on the same operations, lets the last one finish
//!   them, and checks.

mod args;
mod audit;
mod hunt;
pub mod ledger;
pub mod victim;

pub use self::{
    args::StepsVictimArgs,
    hunt::{StepsHunt, StepsReport},
};
