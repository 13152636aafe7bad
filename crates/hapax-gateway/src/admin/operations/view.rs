//! What is answered about operations, as JSON.

use hapax_core::{
    Noted, Operation, Record, Recovery, Stamp, State, StateTag, StoreError, Timestamp,
    store::{Listed, Summary},
};
use hapax_engine::operator::{Changed, Explanation, Listing, Moment, Shown};
use serde::Serialize;

use super::outcome::OutcomeView;

/// A page of operations.
#[derive(Debug, Serialize)]
pub(super) struct ListView {
    operations: Vec<ListedView>,
    /// What to send as `after` to get the next page; `null` on the last one.
    next: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ListedView {
    Readable(Box<HeadView>),
    Unreadable { id: String, unreadable: &'static str },
}

impl ListView {
    pub(super) fn of(listing: &Listing) -> Self {
        Self {
            operations: listing.listed.iter().map(ListedView::of).collect(),
            next: listing.next.map(|id| id.to_string()),
        }
    }
}

impl ListedView {
    fn of(listed: &Listed) -> Self {
        match &listed.summary {
            Ok(summary) => Self::Readable(Box::new(HeadView::of_summary(summary))),
            Err(error) => Self::Unreadable {
                id: listed.id.to_string(),
                unreadable: match error {
                    StoreError::TooNew(_) => "too_new",
                    StoreError::Damaged(_)
                    | StoreError::Unavailable(_)
                    | StoreError::Unconfirmed(_) => "damaged",
                },
            },
        }
    }
}

/// What a listing and a single operation have in common.
#[derive(Debug, Serialize)]
struct HeadView {
    id: String,
    tenant: String,
    scope: String,
    key: String,
    state: &'static str,
    /// The number of the present or last attempt; what a change has to name.
    fence: i64,
    recovery: &'static str,
    created_at: String,
    changed_at: String,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pick_up_by: Option<String>,
}

impl HeadView {
    fn of_summary(summary: &Summary) -> Self {
        let Summary { operation, stamp, recovery, created_at, changed_at, expires_at } = summary;
        Self::new(operation, *stamp, *recovery, [*created_at, *changed_at, *expires_at])
    }

    fn of_record(record: &Record) -> Self {
        let Record { operation, recovery, created_at, changed_at, expires_at, .. } = record;
        Self::new(operation, record.stamp(), *recovery, [*created_at, *changed_at, *expires_at])
    }

    fn new(
        operation: &Operation,
        stamp: Stamp,
        recovery: Recovery,
        [created_at, changed_at, expires_at]: [Timestamp; 3],
    ) -> Self {
        let until = |state| (stamp.tag == state).then(|| stamp.until.to_string());
        Self {
            id: operation.id().to_string(),
            tenant: operation.tenant().as_str().to_owned(),
            scope: operation.scope().as_str().to_owned(),
            key: operation.key().as_str().to_owned(),
            state: stamp.tag.as_str(),
            fence: stamp.fence.get(),
            recovery: recovery.as_str(),
            created_at: created_at.to_string(),
            changed_at: changed_at.to_string(),
            expires_at: expires_at.to_string(),
            lease_until: until(StateTag::Running),
            pick_up_by: until(StateTag::Pending),
        }
    }
}

/// Everything known about one operation.
#[derive(Debug, Serialize)]
pub(super) struct ShownView {
    id: String,
    now: String,
    record: Option<RecordView>,
    timeline: Vec<MomentView>,
    notes: Vec<NoteView>,
}

#[derive(Debug, Serialize)]
struct RecordView {
    #[serde(flatten)]
    head: HeadView,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeView>,
    /// Whether somebody else could finish it from its stored request.
    request_kept: bool,
}

#[derive(Debug, Serialize)]
struct MomentView {
    at: String,
    what: String,
}

#[derive(Debug, Serialize)]
struct NoteView {
    at: String,
    who: String,
    why: String,
    deed: &'static str,
    phase: &'static str,
    fence: i64,
}

impl ShownView {
    pub(super) fn of(shown: &Shown, with_body: bool) -> Self {
        let moments = shown.timeline().into_iter();
        Self {
            id: shown.id.to_string(),
            now: shown.now.to_string(),
            record: shown.record.as_ref().map(|record| RecordView::of(record, with_body)),
            timeline: moments
                .map(|Moment { at, what }| MomentView { at: at.to_string(), what })
                .collect(),
            notes: shown.notes.iter().map(NoteView::of).collect(),
        }
    }
}

impl RecordView {
    fn of(record: &Record, with_body: bool) -> Self {
        let doubt = match &record.state {
            State::InDoubt { doubt, .. } => Some(doubt.as_str()),
            State::Pending { .. }
            | State::Running { .. }
            | State::Completed { .. }
            | State::Failed { .. }
            | State::Released
            | State::Buried => None,
        };
        Self {
            head: HeadView::of_record(record),
            doubt,
            outcome: record.outcome().map(|outcome| OutcomeView::of(outcome, with_body)),
            request_kept: record.request().is_some(),
        }
    }
}

impl NoteView {
    fn of(noted: &Noted) -> Self {
        let note = &noted.note;
        Self {
            at: noted.at.to_string(),
            who: note.reason.who().to_owned(),
            why: note.reason.why().to_owned(),
            deed: note.deed.as_str(),
            phase: note.phase.as_str(),
            fence: note.fence.get(),
        }
    }
}

/// Why the next request with the key will be answered as it will.
#[derive(Debug, Serialize)]
pub(super) struct ExplanationView {
    id: String,
    now: String,
    answer: &'static str,
    another: &'static str,
    because: String,
    advice: String,
}

impl ExplanationView {
    pub(super) fn of(shown: &Shown) -> Self {
        let Explanation { answer, another, because, advice } = shown.explain();
        Self {
            id: shown.id.to_string(),
            now: shown.now.to_string(),
            answer: answer.as_str(),
            another: another.as_str(),
            because,
            advice,
        }
    }
}

/// A change that was made.
#[derive(Debug, Serialize)]
pub(super) struct ChangedView {
    id: String,
    at: String,
    state: &'static str,
    /// Whether the note after the change was kept; the one before it always is.
    noted: bool,
}

impl ChangedView {
    pub(super) fn of(id: &str, changed: &Changed) -> Self {
        Self {
            id: id.to_ascii_lowercase(),
            at: changed.at.to_string(),
            state: changed.state.as_str(),
            noted: changed.noted.is_ok(),
        }
    }
}
