//! What became of messages, written in the transaction of their effect.
//!
//! The record of a first delivery is one insert, sent together with `BEGIN`: an effect with a record
//! takes as many round trips as one without, and so do the records of several messages. A lock before
//! the unique index tells a delivery that is being acted on from one that was, so nobody ever waits for
//! another delivery.
//!
//! The conversation is `hapax_sql::inbox`'s:
//!
//! - `statements`: in which words; `purpose`: what a transaction locks;
//! - `admin`: what people are told, through the store;
//! - `deadpool`, and `sqlx/inbox`: the drivers, each an `Inbox` of hapax-core.

mod admin;
#[cfg(feature = "deadpool")]
mod deadpool;
#[cfg(any(feature = "deadpool", feature = "sqlx", feature = "sqlx-0_8"))]
mod purpose;
#[cfg(any(feature = "deadpool", feature = "sqlx", feature = "sqlx-0_8"))]
pub(crate) mod statements;
