use hapax_core::{Noted, State, store::Summary};
use hapax_engine::operator;
use serde::{Deserialize, Serialize};

use super::{OperationDocument, StoredOutcome};

/// Everything known about one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownDocument {
    /// Its id.
    pub id: String,
    /// When it was looked at.
    pub now: String,
    /// What is stored; nothing if only notes are left.
    pub record: Option<RecordDocument>,
    /// What happened, and what will if nobody does anything, in order.
    pub timeline: Vec<MomentDocument>,
    /// What people did to it.
    pub notes: Vec<NoteDocument>,
}

/// What is stored about an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordDocument {
    /// What a listing says about it.
    #[serde(flatten)]
    pub operation: OperationDocument,
    /// What led to the doubt, while it is in doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// What it answered, once it is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<StoredOutcome>,
    /// Whether somebody else could finish it from its stored request.
    pub request_kept: bool,
}

/// Something that happened to an operation, or will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentDocument {
    /// When.
    pub at: String,
    /// What, in words.
    pub what: String,
}

/// What a person did to an operation, or set out to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteDocument {
    /// When it was noted.
    pub at: String,
    /// Who they said they are.
    pub who: String,
    /// Why they did it.
    pub why: String,
    /// What they did.
    pub deed: String,
    /// How far it had come.
    pub phase: String,
    /// The attempt they saw.
    pub fence: i64,
}

/// Why the next request with the key will be answered as it will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplanationDocument {
    /// The operation's id.
    pub id: String,
    /// When it was looked at.
    pub now: String,
    /// What the same request again meets.
    pub answer: String,
    /// What another request under the key meets.
    pub another: String,
    /// Why, in words.
    pub because: String,
    /// What to do, in words.
    pub advice: String,
}

impl ShownDocument {
    /// The document of an operation, with the body of its stored response or without.
    pub fn of(shown: &operator::Shown, with_body: bool) -> Self {
        let moments = shown.timeline().into_iter();
        let moments =
            moments.map(|moment| MomentDocument { at: moment.at.to_string(), what: moment.what });
        Self {
            id: shown.id.to_string(),
            now: shown.now.to_string(),
            record: shown.record.as_ref().map(|record| RecordDocument::of(record, with_body)),
            timeline: moments.collect(),
            notes: shown.notes.iter().map(NoteDocument::of).collect(),
        }
    }
}

impl RecordDocument {
    fn of(record: &hapax_core::Record, with_body: bool) -> Self {
        let doubt = match &record.state {
            State::InDoubt { doubt, .. } => Some(doubt.as_str().to_owned()),
            State::Pending { .. }
            | State::Running { .. }
            | State::Completed { .. }
            | State::Failed { .. }
            | State::Released
            | State::Buried => None,
        };
        Self {
            operation: OperationDocument::of(&summary(record)),
            doubt,
            outcome: record.outcome().map(|outcome| StoredOutcome::of(outcome, with_body)),
            request_kept: record.request().is_some(),
        }
    }
}

/// What a listing says about a record.
pub(in crate::admin::operations) fn summary(record: &hapax_core::Record) -> Summary {
    Summary {
        operation: record.operation.clone(),
        stamp: record.stamp(),
        recovery: record.recovery,
        created_at: record.created_at,
        changed_at: record.changed_at,
        expires_at: record.expires_at,
    }
}

impl NoteDocument {
    fn of(noted: &Noted) -> Self {
        let note = &noted.note;
        Self {
            at: noted.at.to_string(),
            who: note.reason.who().to_owned(),
            why: note.reason.why().to_owned(),
            deed: note.deed.as_str().to_owned(),
            phase: note.phase.as_str().to_owned(),
            fence: note.fence.get(),
        }
    }
}

impl ExplanationDocument {
    /// The document of an explanation.
    pub fn of(shown: &operator::Shown) -> Self {
        let operator::Explanation { answer, another, because, advice } = shown.explain();
        Self {
            id: shown.id.to_string(),
            now: shown.now.to_string(),
            answer: answer.as_str().to_owned(),
            another: another.as_str().to_owned(),
            because,
            advice,
        }
    }
}
