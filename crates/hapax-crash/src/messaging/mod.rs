//! The same for messages: relays and consumers killed at every call, brokers and databases stopped,
//! and one effect for each event that was committed.
//!
//! Events are written all the while, in transactions of a business (`writer`); relays carry them
//! from the outbox to NATS, and consumers act on them in PostgreSQL, where a second effect would be a
//! second row.
//!
//! - [`relay`] and [`consumer`]: the victims; [`Orders`]: what they are told to do;
//! - `watched`: the places around every call of theirs;
//! - [`Drive`]: has all of it done, and asks [`check`] what is left; `hunt`: starts and kills;
//!   `strike`: who dies how; [`Trouble`]: what befalls the servers meanwhile;
//! - `world`: the servers; `line`: what belongs together on them; `log`: the outbox, as the drive
//!   sees it; `finish`: waits until all is over, and reads it.

pub mod check;
pub mod consumer;
mod drive;
mod finish;
mod hunt;
pub mod line;
mod log;
mod orders;
pub mod relay;
mod state;
mod strike;
mod summary;
mod trouble;
pub mod watched;
mod world;
mod writer;

pub use self::{
    drive::Drive,
    orders::{Broken, Orders, Role},
    summary::{Counts, Deaths, Summary},
    trouble::Trouble,
    writer::{Ledger, Written},
};
