use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hapax_core::{Noted, State, StoredStep, store::Summary};
use hapax_engine::operator;
use hapax_tower::stored_request;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

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
    /// Its finished steps, in order; nothing where whoever shows this cannot read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepDocument>>,
}

/// A finished step of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDocument {
    /// Its place in the order.
    pub number: u16,
    /// Its name.
    pub name: String,
    /// When it was kept.
    pub at: String,
    /// How many bytes its result has.
    pub result_bytes: usize,
    /// What it came to, if that was asked for and is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The same in base64, if it was asked for and is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_base64: Option<String>,
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
    /// That request, while it is kept and can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestDocument>,
}

/// A request that is kept for whoever finishes its operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestDocument {
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// How many bytes its body has.
    pub body_bytes: usize,
    /// The SHA-256 of its body, in hexadecimal digits, for whoever may change something: to compare with what was
    /// sent. Of a short body it tells as much as the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<String>,
    /// The body, for whoever may change something, if it was asked for and is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The body in base64, if it was asked for and is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

/// Something that happened to an operation, or will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentDocument {
    /// When.
    pub at: String,
    /// What, in words.
    pub what: String,
    /// Who tells of it: the `record`, the `history` that Hapax noted, or the note of a `person`.
    #[serde(default)]
    pub by: String,
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
        let moments = shown.timeline().into_iter().map(|moment| MomentDocument {
            at: moment.at.to_string(),
            what: moment.what,
            by: moment.kind.as_str().to_owned(),
        });
        Self {
            id: shown.id.to_string(),
            now: shown.now.to_string(),
            record: shown.record.as_ref().map(|record| RecordDocument::of(record, with_body)),
            timeline: moments.collect(),
            notes: shown.notes.iter().map(NoteDocument::of).collect(),
            steps: None,
        }
    }

    /// The same without what a client sent, for whoever may only look.
    #[must_use]
    pub fn without_request_body(mut self) -> Self {
        if let Some(request) = self.record.as_mut().and_then(|record| record.request.as_mut()) {
            (request.body, request.body_base64, request.body_sha256) = (None, None, None);
        }
        self
    }

    /// The same with these finished steps, and with their results or without.
    #[must_use]
    pub fn with_steps(self, steps: &[StoredStep], with_results: bool) -> Self {
        let steps = steps.iter().map(|step| StepDocument::of(step, with_results)).collect();
        Self { steps: Some(steps), ..self }
    }
}

impl StepDocument {
    fn of(stored: &StoredStep, with_result: bool) -> Self {
        let step = &stored.step;
        let (result, result_base64) = shown_bytes(step.result(), with_result);
        Self {
            number: step.number(),
            name: step.name().as_str().to_owned(),
            at: stored.at.to_string(),
            result_bytes: step.result().len(),
            result,
            result_base64,
        }
    }
}

impl RequestDocument {
    /// The document of a kept request; nothing if it is sealed, or of no version that is known.
    fn of(kept: &Bytes, with_body: bool) -> Option<Self> {
        let request = stored_request::read(kept.clone())?;
        let (body, body_base64) = shown_bytes(request.body(), with_body);
        let digest = Sha256::digest(request.body());
        Some(Self {
            method: request.method().as_str().to_owned(),
            path: request.uri().path().to_owned(),
            body_bytes: request.body().len(),
            body_sha256: Some(digest.iter().map(|byte| format!("{byte:02x}")).collect()),
            body,
            body_base64,
        })
    }
}

/// What is shown of bytes, if they were asked for: as text, or in base64 if they are none.
pub(super) fn shown_bytes(bytes: &[u8], are_wanted: bool) -> (Option<String>, Option<String>) {
    match (are_wanted, str::from_utf8(bytes)) {
        (false, _) => (None, None),
        (true, Ok(text)) => (Some(text.to_owned()), None),
        (true, Err(_)) => (None, Some(BASE64_STANDARD.encode(bytes))),
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
            request: record.request().and_then(|kept| RequestDocument::of(kept, with_body)),
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
