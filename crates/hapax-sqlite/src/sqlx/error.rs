//! What an error of `sqlx` means for the caller.

use std::error::Error;

use hapax_core::{StoreError, TransactionError, store::Cause};

use crate::transaction::EndedByHand;

/// The tables of Hapax are missing or old: run [`migrate`](super::migrate) first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tables of Hapax are not there, or not up to date: run the migration first")]
pub struct NotMigrated;

/// The primary result codes of SQLite that mean a decision.
mod code {
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOT_A_DATABASE: i32 = 26;
}

/// Somebody else had the lock for too long.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(code::BUSY | code::LOCKED))
}

/// What a failure before COMMIT, or of a read, means: nothing was written.
pub(super) fn nothing_written(error: sqlx::Error) -> StoreError {
    match primary_code(&error) {
        Some(code::CORRUPT | code::NOT_A_DATABASE) => StoreError::damaged(error),
        Some(_) | None => StoreError::unavailable(error),
    }
}

/// What a failure of COMMIT itself means.
///
/// A lock, a full disk or a deferred constraint leaves the transaction open, and closing its
/// connection rolls it back. After anything else the commit mark may be in the log.
pub(super) fn commit_failed(error: sqlx::Error) -> TransactionError {
    match primary_code(&error) {
        Some(code::BUSY | code::LOCKED) => {
            TransactionError::Conflict(Cause::from(Box::<dyn Error + Send + Sync>::from(error)))
        }
        Some(code::FULL | code::CONSTRAINT) => StoreError::unavailable(error).into(),
        Some(_) | None => StoreError::unconfirmed(error).into(),
    }
}

/// What it means that the caller's savepoint cannot be used: it is no longer there.
pub(super) fn by_hand(error: sqlx::Error) -> StoreError {
    StoreError::damaged(EndedByHand(error))
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}
