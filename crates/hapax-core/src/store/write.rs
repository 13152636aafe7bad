//! What is written to a record, on which condition, and what the store answers.

use std::time::Duration;

use bytes::Bytes;

use crate::{
    fingerprint::Fingerprint,
    operation::{Operation, OperationId},
    outcome::Outcome,
    policy::Recovery,
    record::{Doubt, Fence, Owner, Record, Stamp, StateTag},
    step::Step,
    time::Timestamp,
};

/// One write, to one record.
#[derive(Debug, Clone)]
pub enum Write {
    /// A claim or a takeover.
    Claim(Claim),
    /// The end of an attempt.
    Settle(Settle),
    /// A sign of life.
    Renew(Renew),
    /// A finished step.
    Step(KeepStep),
}

impl Write {
    /// Which operation.
    pub fn id(&self) -> OperationId {
        match self {
            Self::Claim(claim) => claim.operation.id(),
            Self::Settle(settle) => settle.id,
            Self::Renew(renew) => renew.id,
            Self::Step(keep) => keep.id,
        }
    }

    /// How many bytes of request, outcome or result it carries.
    pub fn weight(&self) -> usize {
        match self {
            Self::Claim(claim) => match &claim.entry {
                Entry::Run { request, .. } => request.as_ref().map_or(0, Bytes::len),
                Entry::Queue { request, .. } => request.len(),
            },
            Self::Settle(settle) => settle.to.outcome().map_or(0, Outcome::weight),
            Self::Renew(_) => 0,
            Self::Step(keep) => keep.step.result().len(),
        }
    }
}

/// The answer to a [`Write`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It counts. A step does, too, if one with its number was kept before, which stays.
    Done {
        /// The instant it was written with.
        now: Timestamp,
    },
    /// Nothing was written: what is stored is not what the writer expects.
    Refused {
        /// The store's clock.
        now: Timestamp,
        /// What is stored; `None` if there is nothing, so a claim can be made anew.
        record: Option<Box<Record>>,
    },
}

impl Written {
    /// The store's clock.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Done { now } | Self::Refused { now, .. } => *now,
        }
    }
}

/// Makes a writer the owner, if what is stored is what it expects.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Which operation.
    pub operation: Operation,
    /// The request it comes with.
    pub fingerprint: Fingerprint,
    /// What must be stored for the claim to be won.
    pub over: Over,
    /// The fence it takes.
    pub fence: Fence,
    /// The name of the attempt.
    pub owner: Owner,
    /// What may be done if the owner vanishes.
    pub recovery: Recovery,
    /// How long the record is kept, from the beginning of its life.
    pub retention: Duration,
    /// How long a tombstone is kept after that.
    pub tombstone: Duration,
    /// How it enters.
    pub entry: Entry,
}

/// What a claim must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Nothing: the first claim ever.
    Nothing,
    /// Exactly this, which is used up: a new life begins, with this claim's fingerprint, retention
    /// and recovery.
    Spent(Stamp),
    /// Exactly this, whose owner is gone: the same life goes on, and keeps its beginning, its
    /// retention, its recovery and, unless the claim brings one, its request.
    Abandoned(Stamp),
}

impl Over {
    /// Whether the claimant follows an owner that had begun and whose fate is unknown. What is
    /// pending never does: only what was not sent, or is known to have had no effect, is queued.
    pub fn follows_an_owner(self) -> bool {
        match self {
            Self::Nothing | Self::Spent(_) => false,
            Self::Abandoned(stamp) => stamp.tag != StateTag::Pending,
        }
    }
}

/// How a claim enters.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Running, under a lease.
    Run {
        /// How long the lease lasts from the write.
        lease: Duration,
        /// Kept so that somebody else can finish it.
        request: Option<Bytes>,
    },
    /// Pending, for a worker to pick up.
    Queue {
        /// How long from the write until any worker may pick it up.
        pick_up: Duration,
        /// What is to be done.
        request: Bytes,
    },
}

/// Ends an attempt, if it is still the one that counts.
#[derive(Debug, Clone)]
pub struct Settle {
    /// Which operation.
    pub id: OperationId,
    /// On whose authority.
    pub by: By,
    /// What becomes of it.
    pub to: Settlement,
    /// The record lives at least this long from now; no longer, if it was declined.
    pub keep: Duration,
}

/// On whose authority a record is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Its owner's. It counts while the record is pending, running or in doubt under this fence
    /// and owner: a late owner nobody has followed brings the truth, and ends the doubt.
    Owner {
        /// The attempt's number.
        fence: Fence,
        /// The attempt's name.
        owner: Owner,
    },
    /// An onlooker's (a sweeper, a person). It counts only while the record is exactly as seen,
    /// and not finished.
    Onlooker(Stamp),
}

/// What becomes of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Done, and replayed.
    Completed(Outcome),
    /// Ended in a terminal error, and replayed.
    Failed(Outcome),
    /// Given back: the next arrival executes, under the next fence.
    Released,
    /// Given back by the first attempt there ever was, which did nothing: nobody has seen its fence,
    /// so the record lives for [`Settle::keep`] alone, and leaves no tombstone.
    Declined,
    /// Nobody knows.
    InDoubt(Doubt),
}

impl Settlement {
    /// The state it leads to.
    pub fn tag(&self) -> StateTag {
        match self {
            Self::Completed(_) => StateTag::Completed,
            Self::Failed(_) => StateTag::Failed,
            Self::Released | Self::Declined => StateTag::Released,
            Self::InDoubt(_) => StateTag::InDoubt,
        }
    }

    /// The outcome it stores, if any.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Completed(outcome) | Self::Failed(outcome) => Some(outcome),
            Self::Released | Self::Declined | Self::InDoubt(_) => None,
        }
    }
}

/// A sign of life: the lease is counted anew from the write, if the attempt still owns the record.
#[derive(Debug, Clone, Copy)]
pub struct Renew {
    /// Which operation.
    pub id: OperationId,
    /// The attempt's number.
    pub fence: Fence,
    /// The attempt's name.
    pub owner: Owner,
    /// How long the lease lasts from the write.
    pub lease: Duration,
}

/// Keeps what a step came to, if the attempt still runs the operation.
#[derive(Debug, Clone)]
pub struct KeepStep {
    /// Which operation.
    pub id: OperationId,
    /// The attempt's number.
    pub fence: Fence,
    /// The attempt's name.
    pub owner: Owner,
    /// When the life of the operation it belongs to began.
    pub life: Timestamp,
    /// The step.
    pub step: Step,
}
