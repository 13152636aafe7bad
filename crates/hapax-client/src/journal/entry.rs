//! What the journal knows of an operation.

use std::time::Duration;

use hapax_core::{Fence, Key, Outcome, Owner};
use http::{Method, Uri};

use super::{
    name::Name,
    request::{JournalRequest, RequestDigest},
    time::Moment,
};

/// Everything the journal knows of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// What the caller calls it.
    pub name: Name,
    /// The key it is sent with, always the same one.
    pub key: Key,
    /// What is sent.
    pub request: JournalRequest,
    /// How far it has come.
    pub state: EntryState,
    /// The number that grows each time somebody takes it up.
    pub fence: Fence,
    /// Who took it up last.
    pub owner: Owner,
    /// How many attempts were noted: at least so many were made.
    pub attempts: u32,
    /// When it was begun.
    pub created: Moment,
    /// Since when it may have been sent; `None` if no attempt so far can have had an effect.
    pub sent: Option<Moment>,
    /// The last note of whoever pursues it.
    pub noted: LastProgress,
}

/// How far an operation has come. `A` is what is said of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState<A = Outcome> {
    /// Not over: somebody pursues it, or should.
    Pending {
        /// For how long, from the last note on, its owner is taken to be alive; `None` if nobody
        /// has it.
        lease: Option<Duration>,
    },
    /// The answer said yes.
    Done {
        /// What was answered.
        answer: A,
        /// When that was noted.
        ended: Moment,
    },
    /// The answer said no.
    Refused {
        /// What was answered.
        answer: A,
        /// When that was noted.
        ended: Moment,
    },
    /// It may have happened, and nobody said.
    Unknown {
        /// Why it was left so.
        reason: String,
        /// When that was noted.
        ended: Moment,
    },
    /// No attempt can have had an effect.
    GaveUp {
        /// Why there were no more.
        reason: String,
        /// When that was noted.
        ended: Moment,
    },
}

/// The name of a state, without what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryStateTag {
    /// Not over.
    Pending = 1,
    /// The answer said yes.
    Done = 2,
    /// The answer said no.
    Refused = 3,
    /// It may have happened, and nobody said.
    Unknown = 4,
    /// No attempt can have had an effect.
    GaveUp = 5,
}

impl EntryStateTag {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Done, Self::Refused, Self::Unknown, Self::GaveUp];

    /// The word for it, as in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::GaveUp => "gave_up",
        }
    }
}

impl<A> EntryState<A> {
    /// Its name.
    pub fn tag(&self) -> EntryStateTag {
        match self {
            Self::Pending { .. } => EntryStateTag::Pending,
            Self::Done { .. } => EntryStateTag::Done,
            Self::Refused { .. } => EntryStateTag::Refused,
            Self::Unknown { .. } => EntryStateTag::Unknown,
            Self::GaveUp { .. } => EntryStateTag::GaveUp,
        }
    }

    /// When it ended; `None` while it is pending.
    pub fn ended(&self) -> Option<Moment> {
        match self {
            Self::Pending { .. } => None,
            Self::Done { ended, .. }
            | Self::Refused { ended, .. }
            | Self::Unknown { ended, .. }
            | Self::GaveUp { ended, .. } => Some(*ended),
        }
    }

    /// What was answered, where there is an answer.
    pub fn answer(&self) -> Option<&A> {
        match self {
            Self::Done { answer, .. } | Self::Refused { answer, .. } => Some(answer),
            Self::Pending { .. } | Self::Unknown { .. } | Self::GaveUp { .. } => None,
        }
    }

    /// Why it ended without an answer.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unknown { reason, .. } | Self::GaveUp { reason, .. } => Some(reason),
            Self::Pending { .. } | Self::Done { .. } | Self::Refused { .. } => None,
        }
    }

    fn map<B>(self, say: impl FnOnce(A) -> B) -> EntryState<B> {
        match self {
            Self::Pending { lease } => EntryState::Pending { lease },
            Self::Done { answer, ended } => EntryState::Done { answer: say(answer), ended },
            Self::Refused { answer, ended } => EntryState::Refused { answer: say(answer), ended },
            Self::Unknown { reason, ended } => EntryState::Unknown { reason, ended },
            Self::GaveUp { reason, ended } => EntryState::GaveUp { reason, ended },
        }
    }
}

/// What whoever pursues an operation has noted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastProgress {
    /// When.
    pub at: Moment,
    /// How much of the deadline was left then.
    pub left: Duration,
}

impl JournalEntry {
    /// How much of the deadline is left now.
    pub fn left(&self, now: Moment) -> Duration {
        self.noted.left.saturating_sub(now.since(self.noted.at))
    }

    /// How much longer its owner is taken to be alive; `None` if it is free or has ended.
    pub fn held(&self, now: Moment) -> Option<Duration> {
        match self.state {
            EntryState::Pending { lease } => {
                lease.and_then(|span| now.lease_left(self.noted.at, span))
            }
            EntryState::Done { .. }
            | EntryState::Refused { .. }
            | EntryState::Unknown { .. }
            | EntryState::GaveUp { .. } => None,
        }
    }

    pub(super) fn hold(&self) -> OperationHold {
        OperationHold {
            name: self.name.clone(),
            key: self.key.clone(),
            digest: self.request.digest(),
            fence: self.fence,
            owner: self.owner,
        }
    }

    pub(super) fn summary(self, now: Moment) -> EntrySummary {
        let (held, left) = (self.held(now), self.left(now));
        EntrySummary {
            name: self.name,
            key: self.key,
            method: self.request.method,
            url: self.request.url,
            state: self.state.map(|answer| answer.status()),
            attempts: self.attempts,
            created: self.created,
            held,
            left,
        }
    }
}

/// The right to pursue an operation: what every later write of its owner names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationHold {
    pub(super) name: Name,
    pub(super) key: Key,
    pub(super) digest: RequestDigest,
    pub(super) fence: Fence,
    pub(super) owner: Owner,
}

impl OperationHold {
    /// Which operation.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The key to send it with.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The number of this taking up.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Whether this is who took the entry up last.
    pub(super) fn is_current(&self, entry: &JournalEntry) -> bool {
        self.fence == entry.fence && self.owner == entry.owner
    }

    /// Whether an answer to what was sent under this hold answers the entry: the name may have been
    /// forgotten and given to another operation since.
    pub(super) fn answers(&self, entry: &JournalEntry) -> bool {
        self.key == entry.key && self.fence <= entry.fence && self.digest == entry.request.digest()
    }
}

/// An entry in a list: without headers and bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySummary {
    /// What the caller calls it.
    pub name: Name,
    /// The key it is sent with.
    pub key: Key,
    /// The method.
    pub method: Method,
    /// Where it is sent.
    pub url: Uri,
    /// How far it has come, with the status of the answer.
    pub state: EntryState<u16>,
    /// How many attempts were noted.
    pub attempts: u32,
    /// When it was begun.
    pub created: Moment,
    /// How much longer its owner is taken to be alive; `None` if nobody has it.
    pub held: Option<Duration>,
    /// How much of the deadline is left.
    pub left: Duration,
}
