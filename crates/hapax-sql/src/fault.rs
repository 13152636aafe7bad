use std::error::Error;

use hapax_core::{StoreError, TransactionError, store::Cause};

/// Why a statement has no answer, as far as the driver knows.
///
/// What that means for the caller depends on where it happens: see [`before_commit`](Self::before_commit),
/// [`of_commit`](Self::of_commit) and [`of_statement`](Self::of_statement).
#[derive(Debug, Clone)]
pub enum TransactionFault {
    /// Another transaction was in the way. This one comes to nothing, and may be tried again.
    Conflict(Cause),
    /// What was to be new is there already, or changed since it was read. The transaction comes to nothing.
    Taken(Cause),
    /// The database refused it, with this code: SQLSTATE in PostgreSQL, the result code in SQLite. The
    /// transaction comes to nothing.
    Refused {
        /// The code.
        code: String,
        /// What the driver said.
        cause: Cause,
    },
    /// What is stored cannot be right.
    Damaged(Cause),
    /// What is stored was written by a newer version.
    TooNew(Cause),
    /// Nobody said what became of it.
    Unanswered(Cause),
}

impl TransactionFault {
    /// Another transaction was in the way.
    pub fn conflict(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Conflict(Cause::from(cause.into()))
    }

    /// What was to be new is there already, or changed since it was read.
    pub fn taken(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Taken(Cause::from(cause.into()))
    }

    /// The database refused it, with this code.
    pub fn refused(
        code: impl Into<String>,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Refused { code: code.into(), cause: Cause::from(cause.into()) }
    }

    /// What is stored cannot be right.
    pub fn damaged(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Damaged(Cause::from(cause.into()))
    }

    /// Nobody said what became of it.
    pub fn unanswered(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unanswered(Cause::from(cause.into()))
    }

    /// A column does not hold what was written into it.
    #[cold]
    pub fn unexpected(at: usize) -> Self {
        Self::damaged(format!("column {at} is not what was asked for"))
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Conflict(_)
            | Self::Taken(_)
            | Self::Damaged(_)
            | Self::TooNew(_)
            | Self::Unanswered(_) => None,
        }
    }

    /// The meaning before anything was committed.
    pub fn before_commit(self) -> TransactionError {
        match self {
            Self::Conflict(cause) => TransactionError::Conflict(cause),
            Self::Taken(cause) => TransactionError::Taken(cause),
            Self::Refused { cause, .. } | Self::Unanswered(cause) => {
                StoreError::Unavailable(cause).into()
            }
            Self::Damaged(cause) => StoreError::Damaged(cause).into(),
            Self::TooNew(cause) => StoreError::TooNew(cause).into(),
        }
    }

    /// The meaning where a commit was under way: it may be done, unless it was refused before.
    pub fn of_commit(self) -> TransactionError {
        match self {
            Self::Conflict(_) | Self::Taken(_) | Self::Refused { .. } | Self::TooNew(_) => {
                self.before_commit()
            }
            Self::Damaged(cause) | Self::Unanswered(cause) => StoreError::Unconfirmed(cause).into(),
        }
    }

    /// The meaning where the statement was a transaction of its own, and so was committed or was not.
    pub fn of_statement(self) -> StoreError {
        self.of_commit().into()
    }

    /// The meaning where it only read.
    pub fn of_read(self) -> StoreError {
        self.before_commit().into()
    }
}

/// What cannot be read, or is not to be touched, stops a conversation like any other fault.
impl From<StoreError> for TransactionFault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) | StoreError::Unconfirmed(cause) => {
                Self::Unanswered(cause)
            }
            StoreError::Damaged(cause) => Self::Damaged(cause),
            StoreError::TooNew(cause) => Self::TooNew(cause),
        }
    }
}
