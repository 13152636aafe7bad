//! What a person may do to an operation, and what they may say became of it.

use hapax_core::{Deed, Outcome, StateTag, store::Settlement};

/// What a person wants done to an operation.
///
/// ```
/// use hapax_engine::operator::Change;
///
/// assert_eq!(Change::Release.consequence(), "the next request with this key runs");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Give the key back: the next arrival executes.
    Release,
    /// Write down what they found out.
    Resolve(Resolution),
}

/// What a person found out about an operation.
///
/// Whoever takes an answer from a person sees to it that it does not tell clients the opposite.
///
/// ```
/// use hapax_core::{Outcome, StateTag};
/// use hapax_engine::operator::{Change, Resolution};
///
/// let paid = Change::Resolve(Resolution::Completed { outcome: Outcome::bare(201) });
/// assert_eq!(paid.leads_to(), StateTag::Completed);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// It happened, and this is what it answered.
    Completed {
        /// What clients are answered.
        outcome: Outcome,
    },
    /// It failed for good, and this is what it answered.
    Failed {
        /// What clients are answered.
        outcome: Outcome,
    },
    /// It never happened: the next arrival executes.
    Released,
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
    /// How it is noted, and what is written.
    pub(super) fn into_change(self) -> (Deed, Settlement) {
        match self {
            Self::Completed { outcome } => (Deed::ResolveCompleted, Settlement::Completed(outcome)),
            Self::Failed { outcome } => (Deed::ResolveFailed, Settlement::Failed(outcome)),
            Self::Released => (Deed::ResolveReleased, Settlement::Released),
        }
    }
}
