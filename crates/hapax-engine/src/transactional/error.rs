//! Why an operation in a transaction has no answer.

use std::time::Duration;

use hapax_core::{StoreError, TransactionError, store::Cause, transaction::TransactionAnswer};

use super::WorkError;

/// Why an operation in a transaction has no answer.
///
/// Only [`InTransactionError::Unknown`] leaves open whether something was committed.
///
/// ```
/// use hapax_engine::InTransactionError;
///
/// fn advice(error: &InTransactionError) -> &'static str {
///     match error {
///         InTransactionError::Refused(_) => "it was asked for before",
///         InTransactionError::Unknown(_) => "ask again with the same key",
///         _ => "nothing was committed",
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InTransactionError {
    /// It was not run: busy, in doubt, another request's key, or past retention.
    #[error("it was not run: {0:?}")]
    Refused(TransactionAnswer),
    /// The work failed, and everything was rolled back.
    #[error("the work failed; everything was rolled back")]
    Failed(#[source] WorkError),
    /// The work panicked, and everything was rolled back.
    #[error("the work panicked; everything was rolled back")]
    Panicked,
    /// The work took too long, and everything was rolled back.
    #[error("the work took longer than {limit:?}; everything was rolled back")]
    TimedOut {
        /// How long it may take.
        limit: Duration,
    },
    /// The work answered while something it started still had the transaction, which is therefore
    /// rolled back as soon as that ends.
    #[error("the work kept its transaction; it is rolled back, not committed")]
    Kept,
    /// Other transactions were in the way each time; everything was rolled back.
    #[error("other transactions were in the way each time; everything was rolled back")]
    Conflict(#[source] Cause),
    /// The database cannot be used now; nothing was committed.
    #[error("the database failed; nothing was committed")]
    Store(#[source] StoreError),
    /// The commit was not confirmed, and nobody could say what became of it: ask again with the
    /// same key.
    #[error("the commit was not confirmed; ask again with the same key")]
    Unknown(#[source] StoreError),
}

/// Says that another transaction was in the way, where the driver's own error cannot be passed on:
/// an error of the work, or an extension of a handler's response.
///
/// ```
/// use hapax_core::AttemptAnswer;
/// use hapax_engine::transactional::{TryAgain, WorkError};
///
/// /// Work whose driver hides its errors behind a number.
/// fn read(code: u32, answer: AttemptAnswer) -> Result<AttemptAnswer, WorkError> {
///     const DEADLOCK: u32 = 1213;
///     if code == DEADLOCK { Err(TryAgain.into()) } else { Ok(answer) }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another transaction was in the way")]
pub struct TryAgain;

impl From<TransactionError> for InTransactionError {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Conflict(cause) | TransactionError::Taken(cause) => {
                Self::Conflict(cause)
            }
            TransactionError::Store(error @ StoreError::Unconfirmed(_)) => Self::Unknown(error),
            TransactionError::Store(error) => Self::Store(error),
        }
    }
}
