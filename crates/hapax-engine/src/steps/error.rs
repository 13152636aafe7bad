//! What can go wrong, as decisions for the caller.

use std::{error::Error, time::Duration};

use hapax_core::{InvalidName, InvalidStep, StepName, StoreError, limits::REQUEST_BYTES_MAX};

use super::run::PAUSE_MAX;
use crate::error::{BeginError, SettleError};

/// Why a step has no result.
///
/// Whatever it says, the operation goes on in another attempt
/// ([`Permit::leave`](crate::Permit::leave)); a new life would forget what is kept.
///
/// ```
/// use hapax_engine::{Run, StepError, WorkflowError};
///
/// # async fn charge(_: hapax_core::Key) -> Result<u32, std::io::Error> { Ok(7) }
/// async fn pay(run: &Run) -> Result<Option<u32>, WorkflowError> {
///     match run.step("charge", charge).await {
///         Ok(receipt) => Ok(Some(receipt)),
///         Err(StepError::Failed(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
///             Ok(None)
///         }
///         Err(error) => Err(error.into()),
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum StepError<E> {
    /// The effect failed. It may have happened: it is repeated under the same key, or probed.
    #[error("the step failed")]
    Failed(#[source] E),
    /// This attempt cannot go on.
    #[error(transparent)]
    Stop(#[from] Stop),
}

/// Why an attempt cannot go on with its steps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// The attempt is over, or may be: somebody else goes on.
    #[error("the attempt no longer owns the operation")]
    Superseded,
    /// The probe could not tell whether it happened: ask again later.
    #[error("it is unknown whether the step happened")]
    Unknown,
    /// An earlier step of this attempt happened and was not kept: nothing may follow it here.
    #[error("an earlier step of this attempt was not kept")]
    Broken,
    /// Another step was kept at this place: this is not the code that began the operation.
    #[error(
        "step {number} of this operation is {stored:?}, and {asked:?} is asked for: steps keep \
         their names and their order while operations are open, and new ones come last"
    )]
    OrderChanged {
        /// The place, counted from one.
        number: u16,
        /// What the step was called.
        stored: StepName,
        /// What it is called now.
        asked: StepName,
    },
    /// The result was kept in another form, and nothing says how to read it.
    #[error(
        "step {name:?} was kept as version {stored}, and version {asked} is asked for: say how to \
         read it with `migrate`"
    )]
    VersionChanged {
        /// Which step.
        name: StepName,
        /// The version kept.
        stored: u16,
        /// The version asked for.
        asked: u16,
    },
    /// The kept result cannot be read as what is asked for.
    #[error("the kept result of the step cannot be read; raise its version when its form changes")]
    Unreadable(#[source] Cause),
    /// The effect happened and its result cannot be kept.
    #[error("the step's result cannot be kept")]
    NotKeepable(#[source] Cause),
    /// The effect happened and its result was not kept, because of the store.
    #[error("the step's result was not kept")]
    NotKept(#[source] StoreError),
    /// What is kept could not be read; nothing was run.
    #[error("the steps of the operation cannot be read")]
    NotLoaded(#[source] StoreError),
    /// The name is not one; nothing was run.
    #[error("the step's name is not one")]
    Name(#[from] InvalidName),
    /// There are too many steps; nothing was run.
    #[error("the operation has too many steps")]
    TooMany(#[source] InvalidStep),
}

impl Stop {
    /// Whether only other code can go on: that of another process, after a deploy, or a person's.
    fn needs_other_code(&self) -> bool {
        match self {
            Self::OrderChanged { .. }
            | Self::VersionChanged { .. }
            | Self::Unreadable(_)
            | Self::NotKeepable(_)
            | Self::Name(_)
            | Self::TooMany(_) => true,
            Self::Superseded
            | Self::Unknown
            | Self::Broken
            | Self::NotKept(_)
            | Self::NotLoaded(_) => false,
        }
    }
}

/// What made a step or a workflow fail, kept as it was.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a workflow has no outcome yet.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_engine::WorkflowError;
///
/// /// The bank opens in an hour.
/// fn closed() -> WorkflowError {
///     let after = Some(Duration::from_secs(60 * 60));
///     WorkflowError::Later { after, cause: "the bank is closed".into() }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkflowError {
    /// Not now: it goes on after a pause, from its first unfinished step.
    #[error("the workflow goes on later")]
    Later {
        /// How long that pause is; it grows with every attempt if not given.
        after: Option<Duration>,
        /// Why it could not go on now.
        #[source]
        cause: Cause,
    },
    /// Somebody else goes on with it.
    #[error("somebody else goes on with the workflow")]
    Superseded,
}

impl WorkflowError {
    /// Goes on after a pause that grows with every attempt.
    pub fn later(cause: impl Into<Cause>) -> Self {
        Self::Later { after: None, cause: cause.into() }
    }
}

impl<E: Into<Cause>> From<StepError<E>> for WorkflowError {
    fn from(error: StepError<E>) -> Self {
        match error {
            StepError::Failed(cause) => Self::later(cause),
            StepError::Stop(Stop::Superseded) => Self::Superseded,
            StepError::Stop(stop) => {
                let after = stop.needs_other_code().then_some(PAUSE_MAX);
                Self::Later { after, cause: stop.into() }
            }
        }
    }
}

/// Why an operation has no answer from [`Workflows::run`](super::Workflows::run).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It could not begin; nothing was run.
    #[error("the operation could not begin")]
    Begin(#[from] BeginError),
    /// Nothing is registered for its scope; nothing was run.
    #[error("no workflow is registered for scope {scope:?}")]
    NoWorkflow {
        /// The scope.
        scope: String,
    },
    /// The request cannot be kept; nothing was run.
    #[error("the request is {len} bytes; the limit is {REQUEST_BYTES_MAX}")]
    RequestTooLarge {
        /// Its size in bytes.
        len: usize,
    },
    /// It ran, and how far it came was not written down: ask again with the same key.
    #[error("the end of the attempt could not be recorded")]
    Settle(#[from] SettleError),
    /// The runtime went away while it ran: another process goes on with it.
    #[error("the runtime went away")]
    Cut,
}
