//! What an error of `sqlx` means for the caller.

use hapax_core::{StoreError, TransactionError};
use hapax_sql::TransactionFault;

use crate::{
    session::{fault_of, is_lock},
    transaction::EndedByHand,
};

/// The tables of Hapax are missing or old: run [`migrate`](super::migrate) first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tables of Hapax are not there, or not up to date: run the migration first")]
pub struct NotMigrated;

/// Somebody else had the lock for too long.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    code_of(error).is_some_and(is_lock)
}

/// The fault behind an error of `sqlx`.
pub(super) fn fault(error: sqlx::Error) -> TransactionFault {
    fault_of(code_of(&error), error)
}

/// What a failure before COMMIT, or of a read, means: nothing was written.
pub(super) fn nothing_written(error: sqlx::Error) -> StoreError {
    fault(error).of_read()
}

/// What a failure of COMMIT itself means.
pub(super) fn commit_failed(error: sqlx::Error) -> TransactionError {
    fault(error).of_commit()
}

/// What it means that the caller's savepoint cannot be used: it is no longer there.
pub(super) fn by_hand(error: sqlx::Error) -> StoreError {
    StoreError::damaged(EndedByHand(error))
}

fn code_of(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}
