use hapax_core::{StateTag, StoreError, store};
use hapax_engine::operator;
use serde::{Deserialize, Serialize};

/// A page of operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListingDocument {
    /// The operations, in order of their id.
    pub operations: Vec<ListedDocument>,
    /// What to send as `after` to get the next page; nothing on the last one.
    pub next: Option<String>,
    /// As many were put in order, and there are more: they may be older than those that are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<usize>,
}

/// An operation in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ListedDocument {
    /// One whose record can be read.
    Readable(Box<OperationDocument>),
    /// One whose record cannot be read, which hides no other.
    Unreadable {
        /// Its id.
        id: String,
        /// Why: `damaged` or `too_new`.
        unreadable: String,
    },
}

/// What a listing and a single operation have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationDocument {
    /// Its id, as 32 hexadecimal digits.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// What is done.
    pub scope: String,
    /// The client's key.
    pub key: String,
    /// The state it is in.
    pub state: String,
    /// The number of the present or last attempt; what a change has to name.
    pub fence: i64,
    /// What becomes of it when its owner vanishes.
    pub recovery: String,
    /// When the key was first claimed.
    pub created_at: String,
    /// When it entered its state.
    pub changed_at: String,
    /// When its outcome expires.
    pub expires_at: String,
    /// The name of the attempt that runs it, or that left it in doubt: drawn for each attempt, and known to
    /// nobody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How long its owner is trusted to be alive, while it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<String>,
    /// From when on any worker may pick it up, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pick_up_by: Option<String>,
}

impl ListingDocument {
    /// The document of a page.
    pub fn of(listing: &operator::Listing) -> Self {
        Self {
            operations: listing.listed.iter().map(ListedDocument::of).collect(),
            next: listing.next.map(|id| id.to_string()),
            incomplete: None,
        }
    }

    /// The document of a page that is in another order than that of ids.
    pub(in crate::admin::operations) fn ordered(
        listed: &[store::Listed],
        next: Option<String>,
        incomplete: Option<usize>,
    ) -> Self {
        Self { operations: listed.iter().map(ListedDocument::of).collect(), next, incomplete }
    }
}

impl ListedDocument {
    /// The operation's id, readable or not.
    pub fn id(&self) -> &str {
        match self {
            Self::Readable(operation) => &operation.id,
            Self::Unreadable { id, .. } => id,
        }
    }

    fn of(listed: &store::Listed) -> Self {
        let unreadable = match &listed.summary {
            Ok(summary) => return Self::Readable(Box::new(OperationDocument::of(summary))),
            Err(StoreError::TooNew(_)) => "too_new",
            Err(
                StoreError::Damaged(_) | StoreError::Unavailable(_) | StoreError::Unconfirmed(_),
            ) => "damaged",
        };
        Self::Unreadable { id: listed.id.to_string(), unreadable: unreadable.to_owned() }
    }
}

impl OperationDocument {
    pub(super) fn of(summary: &store::Summary) -> Self {
        let store::Summary { operation, stamp, .. } = summary;
        let until = |state| (stamp.tag == state).then(|| stamp.until.to_string());
        Self {
            id: operation.id().to_string(),
            tenant: operation.tenant().as_str().to_owned(),
            scope: operation.scope().as_str().to_owned(),
            key: operation.key().as_str().to_owned(),
            state: stamp.tag.as_str().to_owned(),
            fence: stamp.fence.get(),
            recovery: summary.recovery.as_str().to_owned(),
            created_at: summary.created_at.to_string(),
            changed_at: summary.changed_at.to_string(),
            expires_at: summary.expires_at.to_string(),
            owner: matches!(stamp.tag, StateTag::Running | StateTag::InDoubt)
                .then(|| format!("{:016x}", stamp.owner.0)),
            lease_until: until(StateTag::Running),
            pick_up_by: until(StateTag::Pending),
        }
    }
}
