use hapax_core::OperationId;
use hapax_engine::operator::{self, Change, Order, Resolution};
use serde::{Deserialize, Serialize};

use super::GivenOutcome;

/// Gives a key back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseDocument {
    /// The fence the person saw.
    pub fence: i64,
    /// Who they are; left out by somebody whom a provider signed in.
    #[serde(default)]
    pub who: String,
    /// Why they do it.
    pub why: String,
    /// Whether to do it even if an owner is, or may be, at work.
    #[serde(default)]
    pub even_if_running: bool,
    /// Whether only to say what would be done, or why it would be refused.
    #[serde(default)]
    pub dry_run: bool,
}

/// Writes down what became of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// The fence the person saw.
    pub fence: i64,
    /// Who they are; left out by somebody whom a provider signed in.
    #[serde(default)]
    pub who: String,
    /// Why they do it.
    pub why: String,
    /// Whether to do it even if an owner is, or may be, at work.
    #[serde(default)]
    pub even_if_running: bool,
    /// Whether only to say what would be done, or why it would be refused.
    #[serde(default)]
    pub dry_run: bool,
    /// What became of it.
    #[serde(rename = "as")]
    pub found: FoundDocument,
    /// What clients are to be answered, unless it never happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<GivenOutcome>,
}

/// What a person found out about an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundDocument {
    /// It happened.
    Completed,
    /// It failed for good.
    Failed,
    /// It never happened.
    Released,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedDocument {
    /// The operation's id.
    pub id: String,
    /// When it was written.
    pub at: String,
    /// The state it led to.
    pub state: String,
    /// Whether the note after the change was kept; the one before it always is.
    pub noted: bool,
}

/// A change that would be made if it were ordered now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeseenDocument {
    /// The operation's id.
    pub id: String,
    /// The state it would lead to.
    pub would_be: String,
    /// What would follow from it for clients, in words.
    pub would: String,
}

impl ReleaseDocument {
    /// The document of an order to release.
    pub fn of(order: &Order, dry_run: bool) -> Self {
        Self {
            fence: order.seen.get(),
            who: order.reason.who().to_owned(),
            why: order.reason.why().to_owned(),
            even_if_running: order.even_if_running,
            dry_run,
        }
    }
}

impl Resolve {
    /// The document of an order to resolve.
    pub fn of(order: &Order, resolution: &Resolution, dry_run: bool) -> Self {
        let (found, outcome) = match resolution {
            Resolution::Completed { outcome } => (FoundDocument::Completed, Some(outcome)),
            Resolution::Failed { outcome } => (FoundDocument::Failed, Some(outcome)),
            Resolution::Released => (FoundDocument::Released, None),
        };
        let ReleaseDocument { fence, who, why, even_if_running, dry_run } =
            ReleaseDocument::of(order, dry_run);
        let outcome = outcome.map(GivenOutcome::of);
        Self { fence, who, why, even_if_running, dry_run, found, outcome }
    }
}

impl ChangedDocument {
    /// The document of a change that was made.
    pub fn of(id: OperationId, changed: &operator::Changed) -> Self {
        Self {
            id: id.to_string(),
            at: changed.at.to_string(),
            state: changed.state.as_str().to_owned(),
            noted: changed.noted.is_ok(),
        }
    }
}

impl ForeseenDocument {
    /// The document of a change that would be made.
    pub fn of(id: OperationId, change: &Change) -> Self {
        Self {
            id: id.to_string(),
            would_be: change.leads_to().as_str().to_owned(),
            would: change.consequence().to_owned(),
        }
    }
}
