//! What each write does to an entry. Nothing here reads a clock or a file.

use std::time::Duration;

use hapax_core::{Fence, Key, Outcome, Owner};

use super::{
    entry::{EntryState, EntryStateTag, JournalEntry, LastProgress, OperationHold},
    name::Name,
    request::JournalRequest,
    time::Moment,
};

/// Longest reason that is kept, in bytes; what is longer is cut.
const REASON_BYTES_MAX: usize = 4 << 10;

/// The wish to pursue an operation, whether it is known already or not.
///
/// Asking again with a clone of it is safe: what was granted is granted again.
#[derive(Debug, Clone)]
pub struct Begin {
    pub(super) name: Name,
    pub(super) key: Key,
    pub(super) request: JournalRequest,
    pub(super) deadline: Duration,
    pub(super) owner: Owner,
}

impl Begin {
    /// Pursue `request` for `deadline` from now on, with `key` unless the name has one already.
    pub fn new(name: Name, key: Key, request: JournalRequest, deadline: Duration) -> Self {
        Self { name, key, request, deadline, owner: Owner::draw() }
    }
}

/// Which entries somebody who does not bring the request may take up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeUp {
    /// What is pending, for what is left of its deadline.
    Pending,
    /// What is pending, unknown or given up, for this long from now on: a person's wish.
    Unanswered {
        /// The new deadline.
        deadline: Duration,
    },
}

/// What somebody who wants to pursue an operation is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PursuitAdmission {
    /// It is theirs: it is written down, and may be sent.
    Granted(Box<PursuitGrant>),
    /// It is over, and there is nothing to send.
    Ended(Box<JournalEntry>),
    /// Somebody else pursues it.
    Held {
        /// When its lease ends, unless it is renewed.
        ends_in: Duration,
    },
    /// The name belongs to another request.
    Mismatch,
}

/// The right to pursue an operation, and what came before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PursuitGrant {
    /// What every later write names.
    pub hold: OperationHold,
    /// What was found; `None` if the operation is new.
    pub found: Option<EntryStateTag>,
    /// What was written down to be sent.
    pub request: JournalRequest,
    /// Attempts noted before: at least so many were made.
    pub attempts: u32,
    /// How much of the deadline is left; it may be nothing.
    pub left: Duration,
    /// How long ago it may have been sent for the first time; `None` if no attempt before can have
    /// had an effect.
    pub sent: Option<Duration>,
}

/// How far whoever pursues an operation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PursuitProgress {
    /// All attempts so far, those of earlier owners included.
    pub attempts: u32,
    /// What is left of the deadline.
    pub left: Duration,
}

/// Whether an attempt so far can have had an effect, of this owner or of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It can.
    Maybe,
    /// Nothing left this machine, or every answer said that nothing ran.
    Nothing,
}

/// How an operation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PursuitEnd {
    /// The answer said yes.
    Done(Outcome),
    /// The answer said no.
    Refused(Outcome),
    /// It may have happened, and nobody said.
    Unknown {
        /// Why it is left so.
        reason: String,
    },
    /// No attempt can have had an effect.
    GaveUp {
        /// Why there are no more.
        reason: String,
    },
}

/// What became of an owner's write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerWriteResult {
    /// It is written.
    Done,
    /// Nothing was changed: the operation is somebody else's, over, or forgotten.
    Lost {
        /// What is there instead; `None` if there is nothing.
        found: Option<Box<JournalEntry>>,
    },
}

/// What is to be written, and what its writer is told.
pub(super) struct EntryChange<T> {
    pub(super) write: Option<JournalEntry>,
    pub(super) told: T,
}

impl<T> EntryChange<T> {
    fn none(told: T) -> Self {
        Self { write: None, told }
    }
}

/// A name nobody has used yet.
pub(super) fn first(now: Moment, lease: Duration, asked: &Begin) -> (JournalEntry, PursuitGrant) {
    let entry = JournalEntry {
        name: asked.name.clone(),
        key: asked.key.clone(),
        request: asked.request.clone(),
        state: EntryState::Pending { lease: Some(lease) },
        fence: Fence::FIRST,
        owner: asked.owner,
        attempts: 0,
        created: now,
        // Whoever dies from here on has perhaps sent it.
        sent: Some(now),
        noted: LastProgress { at: now, left: asked.deadline },
    };
    let granted = PursuitGrant {
        hold: entry.hold(),
        found: None,
        request: asked.request.clone(),
        attempts: 0,
        left: asked.deadline,
        sent: None,
    };
    (entry, granted)
}

/// A name that is known.
pub(super) fn begin(
    now: Moment,
    lease: Duration,
    asked: &Begin,
    found: JournalEntry,
) -> EntryChange<PursuitAdmission> {
    if found.request.digest() != asked.request.digest() {
        return EntryChange::none(PursuitAdmission::Mismatch);
    }
    let wish = TakeUp::Unanswered { deadline: asked.deadline };
    take_up(now, lease, (asked.owner, wish), found)
}

pub(super) fn take_up(
    now: Moment,
    lease: Duration,
    (owner, wish): (Owner, TakeUp),
    mut found: JournalEntry,
) -> EntryChange<PursuitAdmission> {
    let again = found.owner == owner;
    if let Some(ends_in) = found.held(now).filter(|_| !again) {
        return EntryChange::none(PursuitAdmission::Held { ends_in });
    }
    let tag = found.state.tag();
    let left = match (wish, tag) {
        (_, EntryStateTag::Done | EntryStateTag::Refused)
        | (TakeUp::Pending, EntryStateTag::Unknown | EntryStateTag::GaveUp) => {
            return EntryChange::none(PursuitAdmission::Ended(Box::new(found)));
        }
        (TakeUp::Pending, EntryStateTag::Pending) => found.left(now),
        (
            TakeUp::Unanswered { deadline },
            EntryStateTag::Pending | EntryStateTag::Unknown | EntryStateTag::GaveUp,
        ) => deadline,
    };
    let sent = found.sent.map(|sent| now.since(sent));
    if !again {
        found.fence = found.fence.next();
        found.owner = owner;
    }
    found.state = EntryState::Pending { lease: Some(lease) };
    found.sent = found.sent.or(Some(now));
    found.noted = LastProgress { at: now, left };
    let granted = PursuitGrant {
        hold: found.hold(),
        found: Some(tag),
        request: found.request.clone(),
        attempts: found.attempts,
        left,
        sent,
    };
    EntryChange { write: Some(found), told: PursuitAdmission::Granted(Box::new(granted)) }
}

/// The lease anew, if nobody has taken the operation over. One that has ended is revived.
pub(super) fn renew(
    now: Moment,
    lease: Duration,
    (hold, progress): (&OperationHold, PursuitProgress),
    found: JournalEntry,
) -> EntryChange<OwnerWriteResult> {
    note(now, Some(lease), (hold, progress), found)
}

/// The lease given up; the operation stays pending, free for whoever comes next.
pub(super) fn release(
    now: Moment,
    (hold, progress, sent): (&OperationHold, PursuitProgress, Sent),
    found: JournalEntry,
) -> EntryChange<OwnerWriteResult> {
    let mut change = note(now, None, (hold, progress), found);
    if let Some(entry) = &mut change.write {
        entry.sent = match sent {
            Sent::Maybe => entry.sent.or(Some(now)),
            Sent::Nothing => None,
        };
    }
    change
}

fn note(
    now: Moment,
    lease: Option<Duration>,
    (hold, progress): (&OperationHold, PursuitProgress),
    mut found: JournalEntry,
) -> EntryChange<OwnerWriteResult> {
    if !hold.is_current(&found) || found.state.tag() != EntryStateTag::Pending {
        return lost(found);
    }
    found.state = EntryState::Pending { lease };
    found.attempts = found.attempts.max(progress.attempts);
    found.noted = LastProgress { at: now, left: progress.left };
    EntryChange { write: Some(found), told: OwnerWriteResult::Done }
}

/// A yes is a yes whoever heard it: the key is the same, so it is kept while there is no other
/// answer. Anything else is believed only of the one who pursues the operation now: a no may be
/// about one attempt alone, said by somebody who never saw the key, while another one succeeds.
pub(super) fn settle(
    now: Moment,
    (hold, attempts, end): (&OperationHold, u32, &PursuitEnd),
    mut found: JournalEntry,
) -> EntryChange<OwnerWriteResult> {
    if says(&found, end) && hold.answers(&found) {
        return EntryChange::none(OwnerWriteResult::Done);
    }
    let may = match (end, found.state.tag()) {
        (_, EntryStateTag::Done | EntryStateTag::Refused) => false,
        (
            PursuitEnd::Done(_),
            EntryStateTag::Pending | EntryStateTag::Unknown | EntryStateTag::GaveUp,
        ) => hold.answers(&found),
        (
            PursuitEnd::Refused(_) | PursuitEnd::Unknown { .. } | PursuitEnd::GaveUp { .. },
            EntryStateTag::Pending,
        ) => hold.is_current(&found),
        (
            PursuitEnd::Refused(_) | PursuitEnd::Unknown { .. } | PursuitEnd::GaveUp { .. },
            EntryStateTag::Unknown | EntryStateTag::GaveUp,
        ) => false,
    };
    if !may {
        return lost(found);
    }
    found.attempts = found.attempts.max(attempts);
    found.noted = LastProgress { at: now, left: found.left(now) };
    found.sent = match end {
        PursuitEnd::Done(_) | PursuitEnd::Refused(_) | PursuitEnd::Unknown { .. } => {
            found.sent.or(Some(now))
        }
        PursuitEnd::GaveUp { .. } => None,
    };
    found.state = match end {
        PursuitEnd::Done(answer) => EntryState::Done { answer: answer.clone(), ended: now },
        PursuitEnd::Refused(answer) => EntryState::Refused { answer: answer.clone(), ended: now },
        PursuitEnd::Unknown { reason } => EntryState::Unknown { reason: cut(reason), ended: now },
        PursuitEnd::GaveUp { reason } => EntryState::GaveUp { reason: cut(reason), ended: now },
    };
    EntryChange { write: Some(found), told: OwnerWriteResult::Done }
}

fn lost(found: JournalEntry) -> EntryChange<OwnerWriteResult> {
    EntryChange::none(OwnerWriteResult::Lost { found: Some(Box::new(found)) })
}

/// Whether the entry has ended just so already: whoever was not told may say it again.
fn says(found: &JournalEntry, end: &PursuitEnd) -> bool {
    match (end, &found.state) {
        (PursuitEnd::Done(said), EntryState::Done { answer, .. })
        | (PursuitEnd::Refused(said), EntryState::Refused { answer, .. }) => said == answer,
        (PursuitEnd::Unknown { reason: said }, EntryState::Unknown { reason, .. })
        | (PursuitEnd::GaveUp { reason: said }, EntryState::GaveUp { reason, .. }) => {
            cut(said) == *reason
        }
        (
            PursuitEnd::Done(_)
            | PursuitEnd::Refused(_)
            | PursuitEnd::Unknown { .. }
            | PursuitEnd::GaveUp { .. },
            EntryState::Pending { .. }
            | EntryState::Done { .. }
            | EntryState::Refused { .. }
            | EntryState::Unknown { .. }
            | EntryState::GaveUp { .. },
        ) => false,
    }
}

fn cut(reason: &str) -> String {
    reason[..reason.floor_char_boundary(REASON_BYTES_MAX)].to_owned()
}
