//! What became of messages, written in the transaction of their effect.
//!
//! [`Database`] is the inbox of your own file through `rusqlite`; `sqlx::Database` is it through a
//! pool. SQLite lets one transaction write at a time, so a message waits for whoever writes, and never
//! longer than its database has patience.
//!
//! The conversation is `hapax_sql::inbox`'s:
//!
//! - `statements`: in which words;
//! - `database`: the inbox through `rusqlite`;
//! - `admin`: what people are told, through the store.

mod admin;
mod admin_statements;
mod database;
pub(crate) mod statements;

use std::time::Duration;

pub use self::database::{Database, Transaction};

/// How long a message waits for other writers of the file, if nothing else is said.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
