//! What became of messages, written in the transaction of their effect.
//!
//! The record of a first delivery is one insert, sent together with `BEGIN`: an effect with a record
//! takes as many round trips as one without. A lock before the unique index tells a delivery that is
//! being acted on from one that was, so nobody ever waits for another delivery.
//!
//! - `desk`: what both drivers can say to the server; `cell`: in which values;
//! - `unit`: the conversation inside a transaction; `books`: what is written outside of one;
//! - `deadpool` and `sqlx`: the two drivers, each an `Inbox` of hapax-core.

mod books;
mod cell;
#[cfg(feature = "deadpool")]
mod deadpool;
mod desk;
#[cfg(feature = "sqlx")]
mod sqlx;
mod unit;

pub(crate) use self::unit::Carried;
