//! What became of messages, written in the transaction of their effect.
//!
//! The record of a first delivery is one insert, sent together with `BEGIN`: an effect with a record
//! takes as many round trips as one without. A lock before the unique index tells a delivery that is
//! being acted on from one that was, so nobody ever waits for another delivery.
//!
//! - `sql_session`: what both drivers can say to the server; `cell`: in which values;
//! - `unit`: the conversation inside a transaction; `tables`: what is written outside of one;
//! - `deadpool`, and `sqlx/inbox`: the drivers, each an `Inbox` of hapax-core.

pub(crate) mod cell;
#[cfg(feature = "deadpool")]
mod deadpool;
pub(crate) mod sql_session;
pub(crate) mod tables;
pub(crate) mod unit;

pub(crate) use self::unit::Carried;
