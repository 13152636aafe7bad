//! Same-transaction mode on the caller's own pool: claim, business writes, events and outcome
//! commit together.
//!
//! Nothing is written before the end. The operation's lock is tried and its record read together with
//! `BEGIN`; whoever comes second finds the lock taken, waits for it, and looks again. The record is one
//! plain insert, sent together with `COMMIT`: if somebody else's is there by then, it is an error, and
//! everything is rolled back. The conversation is `hapax_sql::operation`'s.
//!
//! - `deadpool`, `sqlx` and `sqlx_0_8`: the drivers, each a `Database` of hapax-core;
//! - `events`: what is published with the commit; `unit`: what both drivers do besides;
//! - `error`: what a failure means for the whole transaction.

#[cfg(feature = "deadpool")]
pub mod deadpool;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod unit;

use std::fmt;

pub use hapax_sql::operation::ForOperation;
use hapax_sql::operation::OperationStatements;

use crate::answer::{self, Answer};

pub use hapax_sql::inbox::ForMessages;

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

/// What PostgreSQL is told about an operation in its caller's transaction.
pub(crate) const OPERATION: OperationStatements = OperationStatements {
    glance: include_str!("../sql/tx_glance.sql"),
    look: include_str!("../sql/tx_look.sql"),
    peek: include_str!("../sql/tx_peek.sql"),
    lock: "SELECT pg_try_advisory_xact_lock($1::int8)",
    wait: "SELECT hapax.lock_operation($1::int8, $2::int8), \
           current_setting('transaction_isolation') = 'read committed'",
    record: include_str!("../sql/tx_record.sql"),
    follow: include_str!("../sql/tx_follow.sql"),
    // A record that is there, and `hapax.refuse_taken`.
    taken: &["23505", "HX009"],
    pack: |sealed| Answer(sealed).to_vec(),
    unpack: answer::unpack,
};
pub(crate) const CANCEL: &str = include_str!("../sql/tx_cancel.sql");
pub(crate) const SCHEMA: &str = "SELECT version, works_with, salt, \
     current_setting('default_transaction_isolation') = 'serializable' FROM hapax.meta";
