//! Why the harness itself could not go on.

use std::{error::Error, io};

use hapax_core::{InvalidName, StoreError};
use hapax_services::ServiceError;

/// Why the harness itself could not go on. What it finds wrong with a store is no error but a
/// [`HuntFinding`](crate::hunt::HuntFinding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrashError {
    /// The machine refused something ordinary.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why it was refused.
        #[source]
        source: io::Error,
    },
    /// The store could not be opened.
    #[error("the store at {address} cannot be opened")]
    Open {
        /// Where it was looked for.
        address: String,
        /// Why not.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store could not be read for the check.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// A server could not be started or stopped.
    #[error("a server did not do as told")]
    Service(#[from] ServiceError),
    /// A database for the victims could not be made.
    #[error("the database server refused")]
    Postgres(#[from] tokio_postgres::Error),
    /// Some operations did not settle in time.
    #[error("not settled in time: {}", keys.join(", "))]
    Unsettled {
        /// Their keys.
        keys: Vec<String>,
    },
}

impl CrashError {
    pub(crate) fn name(refusal: InvalidName) -> Self {
        Self::Io {
            action: "name an operation".to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidInput, refusal),
        }
    }

    /// Somebody else refused something ordinary.
    pub(crate) fn refused<E>(action: impl Into<String>) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let action = action.into();
        move |cause| Self::Io { action, source: io::Error::other(cause) }
    }

    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }
}
