//! What a person may do to an operation, and what they may say became of it.

use hapax_core::{Deed, Outcome, StateTag, store::Settlement};

/// What a person wants done to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Give the key back: the next arrival executes.
    Release,
    /// Write down what they found out.
    Resolve(Resolution),
}

/// What a person found out about an operation.
///
/// An answer comes in through [`Resolution::completed`] or [`Resolution::failed`], which refuse one
/// that would tell clients the opposite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// It happened, and this is what it answered.
    #[non_exhaustive]
    Completed {
        /// What clients are answered.
        outcome: Outcome,
    },
    /// It failed for good, and this is what it answered.
    #[non_exhaustive]
    Failed {
        /// What clients are answered.
        outcome: Outcome,
    },
    /// It never happened: the next arrival executes.
    Released,
}

/// Why an answer cannot be that of a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResolution {
    /// Clients would take it for a failure, or for no answer at all.
    #[error("the status of what completed is between 200 and 399, not {status}")]
    NotOfCompleted {
        /// The status that was given.
        status: u16,
    },
    /// Clients would take it for a success, or for no answer at all.
    #[error("the status of what failed is between 400 and 599, not {status}")]
    NotOfFailed {
        /// The status that was given.
        status: u16,
    },
}

impl Change {
    /// The state it leads to.
    pub const fn leads_to(&self) -> StateTag {
        match self {
            Self::Resolve(Resolution::Completed { .. }) => StateTag::Completed,
            Self::Resolve(Resolution::Failed { .. }) => StateTag::Failed,
            Self::Release | Self::Resolve(Resolution::Released) => StateTag::Released,
        }
    }

    /// What follows from it for clients, as the end of a sentence.
    pub const fn consequence(&self) -> &'static str {
        match self {
            Self::Resolve(Resolution::Completed { .. }) => {
                "every request with this key is answered with the given answer, as completed"
            }
            Self::Resolve(Resolution::Failed { .. }) => {
                "every request with this key is answered with the given answer, as failed"
            }
            Self::Release | Self::Resolve(Resolution::Released) => {
                "the next request with this key runs"
            }
        }
    }
}

impl Resolution {
    /// It happened, and answered this: a status from 200 to 399.
    pub fn completed(outcome: Outcome) -> Result<Self, InvalidResolution> {
        match outcome.status() {
            200..=399 => Ok(Self::Completed { outcome }),
            status => Err(InvalidResolution::NotOfCompleted { status }),
        }
    }

    /// It failed for good, and answered this: a status from 400 to 599.
    pub fn failed(outcome: Outcome) -> Result<Self, InvalidResolution> {
        match outcome.status() {
            400..=599 => Ok(Self::Failed { outcome }),
            status => Err(InvalidResolution::NotOfFailed { status }),
        }
    }

    /// How it is noted, and what is written.
    pub(super) fn into_change(self) -> (Deed, Settlement) {
        match self {
            Self::Completed { outcome } => (Deed::ResolveCompleted, Settlement::Completed(outcome)),
            Self::Failed { outcome } => (Deed::ResolveFailed, Settlement::Failed(outcome)),
            Self::Released => (Deed::ResolveReleased, Settlement::Released),
        }
    }
}
