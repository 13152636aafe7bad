//! What became of messages, written in the transaction of their effect.
//!
//! [`Database`] is the inbox of your own file through `rusqlite`; `sqlx::Database` is it through a
//! pool. SQLite lets one transaction write at a time, so a message waits for whoever writes, and never
//! longer than its database has patience.
//!
//! - `sql_session`: what both drivers can say; `cell`: in which values;
//! - `unit`: the conversation inside a transaction; `tables`: what is written outside of one;
//! - `database`: the inbox through `rusqlite`.

pub(crate) mod cell;
pub(crate) mod database;
pub(crate) mod sql_session;
pub(crate) mod tables;
pub(crate) mod unit;

use std::time::Duration;

pub use self::database::{Database, Transaction};

/// How long a message waits for other writers of the file, if nothing else is said.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
