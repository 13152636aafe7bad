//! What a failed statement means for the transaction it was in.

use std::error::Error;

use hapax_core::{StoreError, TransactionError, store::Cause};

/// Why a statement in the caller's transaction has no answer.
#[derive(Debug, Clone)]
pub(crate) enum TransactionFault {
    /// The server refused it, with this SQLSTATE, and the transaction is rolled back.
    Refused { code: String, cause: Cause },
    /// Nobody said what became of it.
    Unanswered(Cause),
}

/// Other transactions in the way: a serialization failure, a deadlock, a lock not to be had.
pub(crate) const CONFLICTS: [&str; 3] = ["40001", "40P01", "55P03"];
/// The session ends: said while a commit is under way, that may be done already.
const SESSION_ENDS: &str = "57P";

/// Whether this SQLSTATE says that the server, or the connection to it, goes away.
pub(crate) fn is_gone(code: &str) -> bool {
    code.starts_with(SESSION_ENDS) || code.starts_with("08")
}

impl TransactionFault {
    pub(crate) fn unanswered(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unanswered(Cause::from(cause.into()))
    }

    /// The meaning before anything was committed.
    pub(crate) fn before_commit(self) -> TransactionError {
        match self {
            Self::Refused { code, cause } if CONFLICTS.contains(&code.as_str()) => {
                TransactionError::Conflict(cause)
            }
            Self::Refused { cause, .. } | Self::Unanswered(cause) => {
                TransactionError::Store(StoreError::Unavailable(cause))
            }
        }
    }

    /// The meaning of a commit that has no answer.
    pub(crate) fn of_commit(self) -> TransactionError {
        match self {
            Self::Refused { code, cause } if code.starts_with(SESSION_ENDS) => {
                TransactionError::Store(StoreError::Unconfirmed(cause))
            }
            Self::Refused { .. } => self.before_commit(),
            Self::Unanswered(cause) => TransactionError::Store(StoreError::Unconfirmed(cause)),
        }
    }
}
