//! The same for operations of several effects: killed between any two lines, each effect once.
//!
//! - [`victim`]: a process that runs workflows of four steps, until it dies;
//! - [`ledger`]: where their effects happen, outside of the store;
//! - [`Drive`]: kills one victim after the other on the same operations, lets the last one finish
//!   them, and checks.

mod audit;
mod drive;
pub mod ledger;
pub mod victim;

pub use self::drive::{Drive, Summary};
