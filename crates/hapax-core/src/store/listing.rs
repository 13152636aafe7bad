//! Which records to list, and what is listed of them.

use super::StoreError;
use crate::{
    operation::{Operation, OperationId, Scope, Tenant},
    policy::Recovery,
    record::{Stamp, StateTag},
    time::Timestamp,
};

/// Which records to list; what is `None` does not matter.
///
/// ```
/// use hapax_core::{StateTag, Tenant, store::Filter};
///
/// let tenant = Some(Tenant::parse("acme")?);
/// let doubts = Filter { tenant, state: Some(StateTag::InDoubt), ..Filter::default() };
/// # drop(doubts);
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only of this scope.
    pub scope: Option<Scope>,
    /// Only in this state.
    pub state: Option<StateTag>,
}

/// Which page of a listing.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Only ids after this one.
    pub after: Option<OperationId>,
    /// At most this many.
    pub limit: usize,
}

/// One record of a listing.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The id it is stored under.
    pub id: OperationId,
    /// What it says; [`StoreError::Damaged`] or [`StoreError::TooNew`] if it cannot be read.
    pub summary: Result<Summary, StoreError>,
}

/// A record without its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Which operation.
    pub operation: Operation,
    /// Where it stands, whose it is and until when.
    pub stamp: Stamp,
    /// What may be done if the owner vanishes.
    pub recovery: Recovery,
    /// When its life began.
    pub created_at: Timestamp,
    /// When it entered its state.
    pub changed_at: Timestamp,
    /// Until when a finished record is answered from.
    pub expires_at: Timestamp,
}
