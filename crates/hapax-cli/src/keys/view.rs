//! What is told about keys: the same documents the admin API answers with.

use hapax::{Noted, OperationId, Record, State, StateTag, StoreError, operator, store};
use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// A page of keys.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Keys {
    pub(super) operations: Vec<Listed>,
    /// Give it as `--after` to go on; nothing on the last page.
    pub(super) next: Option<String>,
}

/// A key in a listing.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Listed {
    Readable(Box<Head>),
    Unreadable { id: String, unreadable: String },
}

/// What a listing and a single key have in common.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) tenant: String,
    pub(super) scope: String,
    pub(super) key: String,
    pub(super) state: String,
    /// The number of the present or last attempt.
    pub(super) fence: i64,
    pub(super) recovery: String,
    pub(super) created_at: String,
    pub(super) changed_at: String,
    pub(super) expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pick_up_by: Option<String>,
}

/// Everything about a key.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    pub(super) id: String,
    pub(super) now: String,
    pub(super) record: Option<Stored>,
    pub(super) timeline: Vec<Moment>,
    pub(super) notes: Vec<Note>,
}

/// A record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    #[serde(flatten)]
    pub(super) head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doubt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<Answer>,
    /// Whether somebody else could finish it from its stored request.
    pub(super) request_kept: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Moment {
    pub(super) at: String,
    pub(super) what: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) at: String,
    pub(super) who: String,
    pub(super) why: String,
    pub(super) deed: String,
    pub(super) phase: String,
    pub(super) fence: i64,
}

/// How the next request is answered, and why.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Explanation {
    pub(super) id: String,
    pub(super) now: String,
    pub(super) answer: String,
    /// What another request with the key is answered.
    pub(super) another: String,
    pub(super) because: String,
    pub(super) advice: String,
}

/// A change that was made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Changed {
    pub(super) id: String,
    pub(super) at: String,
    pub(super) state: String,
    /// Whether the note after the change was kept; the one before it always is.
    pub(super) noted: bool,
}

impl Keys {
    pub(super) fn of(listing: &operator::Listing) -> Self {
        let operations = listing.listed.iter().map(Listed::of).collect();
        Self { operations, next: listing.next.map(|id| id.to_string()) }
    }
}

impl Listed {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Readable(head) => &head.id,
            Self::Unreadable { id, .. } => id,
        }
    }

    fn of(listed: &store::Listed) -> Self {
        let unreadable =
            |why: &str| Self::Unreadable { id: listed.id.to_string(), unreadable: why.to_owned() };
        match &listed.summary {
            Ok(summary) => Self::Readable(Box::new(Head::of(summary))),
            Err(StoreError::TooNew(_)) => unreadable("too_new"),
            Err(
                StoreError::Damaged(_) | StoreError::Unavailable(_) | StoreError::Unconfirmed(_),
            ) => unreadable("damaged"),
        }
    }
}

impl Head {
    fn of(summary: &store::Summary) -> Self {
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
            lease_until: until(StateTag::Running),
            pick_up_by: until(StateTag::Pending),
        }
    }
}

impl Shown {
    pub(super) fn of(shown: &operator::Shown, with_body: bool) -> Self {
        let moments = shown.timeline().into_iter();
        let moments = moments.map(|moment| Moment { at: moment.at.to_string(), what: moment.what });
        Self {
            id: shown.id.to_string(),
            now: shown.now.to_string(),
            record: shown.record.as_ref().map(|record| Stored::of(record, with_body)),
            timeline: moments.collect(),
            notes: shown.notes.iter().map(Note::of).collect(),
        }
    }
}

impl Stored {
    fn of(record: &Record, with_body: bool) -> Self {
        Self {
            head: Head::of(&store::Summary {
                operation: record.operation.clone(),
                stamp: record.stamp(),
                recovery: record.recovery,
                created_at: record.created_at,
                changed_at: record.changed_at,
                expires_at: record.expires_at,
            }),
            doubt: doubt(record).map(str::to_owned),
            outcome: record.outcome().map(|outcome| Answer::of(outcome, with_body)),
            request_kept: record.request().is_some(),
        }
    }
}

fn doubt(record: &Record) -> Option<&'static str> {
    match &record.state {
        State::InDoubt { doubt, .. } => Some(doubt.as_str()),
        State::Pending { .. }
        | State::Running { .. }
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Released
        | State::Buried => None,
    }
}

impl Note {
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

impl Explanation {
    pub(super) fn of(shown: &operator::Shown) -> Self {
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

impl Changed {
    pub(super) fn of(id: OperationId, changed: &operator::Changed) -> Self {
        Self {
            id: id.to_string(),
            at: changed.at.to_string(),
            state: changed.state.as_str().to_owned(),
            noted: changed.noted.is_ok(),
        }
    }
}
