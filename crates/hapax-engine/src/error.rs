//! What can go wrong, as decisions for the caller.

use hapax_core::StoreError;

use crate::batcher::NotQueued;

/// Why an operation could not begin. Nothing was run.
///
/// ```
/// use hapax_engine::BeginError;
///
/// /// Nothing was run, so everybody may ask again: here, or at another process.
/// fn is_worth_asking_here(error: &BeginError) -> bool {
///     !matches!(error, BeginError::Stopped)
/// }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The store cannot say who may run it: refuse, and let the client retry.
    #[error("the store cannot decide")]
    Store(#[from] StoreError),
    /// Too many claims are waiting already: refuse, and let the client retry.
    #[error("too many operations are waiting for the store")]
    Overloaded,
    /// Others were faster again and again: refuse, and let the client retry.
    #[error("other writers kept changing the record")]
    Contended,
    /// The store may have forgotten that it was run, after a failover or a restore: refuse until a person, or
    /// everybody who was at work, says that it has not.
    #[error("the store may have forgotten that it was run")]
    Quarantined,
    /// The engine is shutting down: refuse, and let the client retry elsewhere.
    #[error("the engine is shutting down")]
    Stopped,
}

impl From<NotQueued> for BeginError {
    fn from(not_queued: NotQueued) -> Self {
        match not_queued {
            NotQueued::Overloaded => Self::Overloaded,
            NotQueued::Quarantined => Self::Quarantined,
            NotQueued::Closed => Self::Store(not_queued.into()),
        }
    }
}

/// Why the end of an attempt could not be written down.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The store stayed away longer than the engine's patience. The lease will run out, and the
    /// operation's recovery decides.
    #[error("the end of the attempt could not be recorded")]
    NotRecorded(#[source] StoreError),
    /// What is stored cannot be read, so nothing was written over it.
    #[error("the stored record cannot be read")]
    Unreadable(#[source] StoreError),
}
