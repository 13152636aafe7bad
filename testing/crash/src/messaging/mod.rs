//! The same for messages: relays and consumers killed at every call, brokers and databases stopped,
//! and one effect for each event that was committed.
//!
//! Events are written all the while, in transactions of a business (`writer`); relays carry them
//! from the outbox to NATS, and consumers act on them in PostgreSQL, where a second effect would be a
//! second row.
//!
//! - [`relay`] and [`consumer`]: the victims; [`MessagingVictimArgs`]: what they are told to do;
//! - `watched`: the places around every call of theirs;
//! - [`MessagingHunt`]: has all of it done, and asks [`check`] what is left; `hunters`: start and kill;
//!   `strike`: who dies how; [`Trouble`]: what befalls the servers meanwhile;
//! - `world`: the servers; `line`: what belongs together on them; `log`: the outbox, as the hunt
//!   sees it; `finish`: waits until all is over, and reads it.

mod args;
pub mod check;
pub mod consumer;
mod finish;
mod hunt;
mod hunters;
pub mod line;
mod log;
pub mod relay;
mod report;
mod strike;
mod trouble;
pub mod watched;
mod world;
mod writer;

pub use self::{
    args::{MessagingMistake, MessagingVictimArgs, Role},
    hunt::MessagingHunt,
    report::{Counts, MessagingReport},
    trouble::Trouble,
    writer::{CommittedEvent, WriterLedger},
};
