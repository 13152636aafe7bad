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

impl Claim {
    /// How many bytes of request it carries.
    pub fn weight(&self) -> usize {
        match &self.entry {
            Entry::Run { request, .. } => request.as_ref().map_or(0, Bytes::len),
            Entry::Queue { request, .. } => request.len(),
        }
    }
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

/// The answer to a claim.
#[derive(Debug, Clone)]
pub enum Claimed {
    /// Written: the claimant is the owner.
    Won {
        /// The instant the claim was written with.
        now: Timestamp,
    },
    /// Not written, because of what was found.
    Found {
        /// The store's clock.
        now: Timestamp,
        /// What is stored; `None` if it was removed meanwhile, so the claim can be made anew.
        record: Option<Box<Record>>,
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

impl Settle {
    /// How many bytes of outcome it carries.
    pub fn weight(&self) -> usize {
        self.to.outcome().map_or(0, Outcome::weight)
    }
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

/// The answer to a settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Written.
    Done {
        /// The instant it was written with.
        now: Timestamp,
    },
    /// Nothing was written: the record is somebody else's, finished, or gone.
    Lost,
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

/// The answer to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// Written.
    Done {
        /// The instant it was written with.
        now: Timestamp,
    },
    /// Nothing was written: the attempt no longer owns the record.
    Lost,
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

impl KeepStep {
    /// How many bytes of result it carries.
    pub fn weight(&self) -> usize {
        self.step.result().len()
    }
}

/// The answer to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// A step with this number is kept: this one, unless there was one before, which stays.
    Done {
        /// The store's clock.
        now: Timestamp,
    },
    /// Nothing was written: the attempt no longer runs the operation.
    Lost,
}
