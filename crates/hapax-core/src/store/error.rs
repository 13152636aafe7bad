//! What a failing store means for the caller.

use std::{error::Error, sync::Arc};

/// What a failing store means for the caller.
///
/// ```
/// use hapax_core::StoreError;
///
/// fn advice(error: &StoreError) -> &'static str {
///     match error {
///         StoreError::Unavailable(_) => "nothing was written: try again",
///         StoreError::Unconfirmed(_) => "look before deciding",
///         _ => "a person has to look",
///     }
/// }
/// # assert_eq!(advice(&StoreError::unavailable("gone")), "nothing was written: try again");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written. Trying again is safe.
    #[error("the store is unavailable; nothing was written")]
    Unavailable(#[source] Cause),
    /// It may or may not have been written. Load before deciding.
    #[error("the store did not confirm the write")]
    Unconfirmed(#[source] Cause),
    /// What is stored is not what was written. Refuse and raise an alarm.
    #[error("the stored record is damaged")]
    Damaged(#[source] Cause),
    /// What is stored was written by a newer version. Refuse until this process is upgraded.
    #[error("the stored record was written by a newer version")]
    TooNew(#[source] Cause),
}

/// What made a store fail, kept as it was.
pub type Cause = Arc<dyn Error + Send + Sync>;

impl StoreError {
    /// Nothing was written.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(cause.into()))
    }

    /// It may or may not have been written.
    pub fn unconfirmed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unconfirmed(Arc::from(cause.into()))
    }

    /// What is stored is not what was written.
    pub fn damaged(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Damaged(Arc::from(cause.into()))
    }

    /// What is stored was written by a newer version.
    pub fn too_new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::TooNew(Arc::from(cause.into()))
    }
}
