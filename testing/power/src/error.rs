//! Why the harness itself could not go on.

use std::{error::Error, io, process::ExitStatus};

/// Why the harness itself could not go on. What it finds wrong with a store is no error but a
/// [`PowerFinding`](crate::hunt::PowerFinding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PowerError {
    /// The machine refused something ordinary.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why it was refused.
        #[source]
        source: io::Error,
    },
    /// A program that was started did not succeed.
    #[error("{program} failed ({status}): {said}")]
    Failed {
        /// Which one.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        said: String,
    },
    /// The log of calls is not one.
    #[error("the log cannot be read: {0}")]
    Log(String),
    /// Replayed in full, the log does not lead to the files that are there: something was not recorded.
    #[error("the log is not the whole story of {name}")]
    Incomplete {
        /// Which file differs.
        name: String,
    },
    /// What was planned did not happen, so there is nothing to judge.
    #[error("task {task} did not go as planned: {what}")]
    Unplanned {
        /// Its number.
        task: usize,
        /// What happened instead.
        what: String,
    },
}

impl PowerError {
    /// The machine refused this.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    /// Somebody else refused this.
    pub(crate) fn refused<E>(action: impl Into<String>) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let action = action.into();
        move |cause| Self::Io { action, source: io::Error::other(cause) }
    }
}
