//! Same-transaction mode on the caller's own pool: claim, business writes, events and outcome
//! commit together.
//!
//! A first claim is one insert, written as finished: nobody outside sees it before the commit, and
//! the outcome is put into its row at the end. Whoever comes
//! second finds the operation's lock taken, and waits for it. Only then does it look at what is
//! stored, and `hapax_core::decide` says what that means.
//!
//! - `deadpool`, `sqlx` and `sqlx_0_8`: the drivers, each a `Database` of hapax-core;
//! - `session`: what each can say to the server; `unit`: the same conversation for all;
//! - `error`: what a failure means for the whole transaction.

#[cfg(feature = "deadpool")]
pub mod deadpool;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod session;
pub(crate) mod unit;

use std::fmt;

#[cfg(feature = "sqlx-0_8")]
pub use crate::sqlx_0_8::transaction as sqlx_0_8;
#[cfg(feature = "sqlx")]
pub use crate::sqlx_0_9::transaction as sqlx;

/// The isolation level of a transaction; what the database or the role is set to, if not given.
///
/// ```
/// use hapax_postgres::transaction::Isolation;
///
/// assert_eq!(Isolation::RepeatableRead.to_string(), "REPEATABLE READ");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what is committed when it starts: duplicates wait and are answered.
    ReadCommitted,
    /// One snapshot for all: a duplicate that had to wait is tried again from the start.
    RepeatableRead,
    /// As if one after the other: conflicts of the work's own are tried again, too.
    Serializable,
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        })
    }
}

/// The statement that begins a transaction.
pub(crate) fn begin_statement(isolation: Option<Isolation>) -> &'static str {
    match isolation {
        None => "BEGIN",
        Some(Isolation::ReadCommitted) => "BEGIN ISOLATION LEVEL READ COMMITTED",
        Some(Isolation::RepeatableRead) => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        Some(Isolation::Serializable) => "BEGIN ISOLATION LEVEL SERIALIZABLE",
    }
}

pub(crate) const SAVEPOINT: &str = "SAVEPOINT hapax";
pub(crate) const UNDO: &str = "ROLLBACK TO SAVEPOINT hapax";
pub(crate) const CLAIM: &str = include_str!("../sql/tx_claim.sql");
pub(crate) const FOLLOW: &str = include_str!("../sql/tx_follow.sql");
pub(crate) const READ: &str = include_str!("../sql/tx_read.sql");
pub(crate) const END: &str = include_str!("../sql/tx_end.sql");
pub(crate) const EMIT: &str = include_str!("../sql/tx_emit.sql");
pub(crate) const CANCEL: &str = include_str!("../sql/tx_cancel.sql");
pub(crate) const LOCK: &str = "SELECT hapax.lock_operation(hapax.lock_number(m.salt, 'operation', $1::text), $2::int8) \
     FROM hapax.meta AS m";
pub(crate) const SALT: &str = "SELECT version, works_with, salt FROM hapax.meta";
