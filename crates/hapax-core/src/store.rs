//! The contract between the machine and whatever keeps its records.
//!
//! A store states facts and holds no policy: it writes if what it finds is what the writer
//! expects, and says what it found. Each write touches one key and is atomic by itself; a batch is
//! not, so an engine with only single-key conditional writes can implement it. Durations are turned
//! into instants by the store's own clock, and every answer carries that clock's `now`.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{
    fingerprint::{Fingerprint, Salt},
    note::{Note, Noted},
    operation::{Operation, OperationId, Scope, Tenant},
    outcome::Outcome,
    policy::Recovery,
    record::{Doubt, Fence, Owner, Record, Stamp, StateTag},
    step::{Step, StoredStep},
    time::Timestamp,
};

/// Keeps records. Proven by the conformance suite in `hapax-verify`.
pub trait Store: Send + Sync + 'static {
    /// The salt this store was created with.
    fn salt(&self) -> Salt;

    /// How many commits gain from running at the same time.
    fn lanes(&self) -> usize;

    /// Performs the batch durably and answers item by item, in order.
    ///
    /// No two items of a batch name the same operation. When it returns, every item that was not
    /// answered with an error has been written to stable storage.
    fn commit(&self, batch: Batch) -> impl Future<Output = Committed> + Send;

    /// What is stored under these ids, in order, as of now: never from a replica or a snapshot
    /// older than the call.
    fn load(
        &self,
        ids: Vec<OperationId>,
    ) -> impl Future<Output = Vec<Result<Loaded, StoreError>>> + Send;

    /// The finished steps of the present life of an operation, in order of their number.
    fn steps(
        &self,
        id: OperationId,
    ) -> impl Future<Output = Result<Vec<StoredStep>, StoreError>> + Send;

    /// Up to `limit` records that are running past their lease or pending past their pick-up.
    fn overdue(&self, limit: usize)
    -> impl Future<Output = Result<Vec<Record>, StoreError>> + Send;

    /// Removes up to `limit` finished records past retention, turns those with a tombstone into
    /// one, their steps with them, and lets pending ones past retention fail with [`Outcome`] 504 for another window.
    ///
    /// Also removes up to `limit` notes older than [`NOTE_KEPT`](crate::limits::NOTE_KEPT), which
    /// are not counted.
    fn purge(&self, limit: usize) -> impl Future<Output = Result<Purged, StoreError>> + Send;

    /// Records in order of their id, without their outcomes. A record that cannot be read is
    /// listed as such, and does not hide the others.
    fn list(
        &self,
        filter: Filter,
        page: Page,
    ) -> impl Future<Output = Result<Vec<Listed>, StoreError>> + Send;

    /// Keeps a note durably, whether or not there is a record of its operation.
    fn note(&self, note: Note) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The latest `limit` notes on an operation, oldest first.
    fn notes(
        &self,
        id: OperationId,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Noted>, StoreError>> + Send;

    /// Ends when the record may have changed. A hint: it may come early, late or never.
    fn watch(&self, id: OperationId) -> impl Future<Output = ()> + Send;
}

/// Writes handed to a store together.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Claims and takeovers.
    pub claims: Vec<Claim>,
    /// Ends of attempts.
    pub settles: Vec<Settle>,
    /// Signs of life.
    pub renews: Vec<Renew>,
    /// Finished steps.
    pub steps: Vec<KeepStep>,
}

/// The answers to a [`Batch`], item by item.
#[derive(Debug, Default)]
pub struct Committed {
    /// One for each claim.
    pub claims: Vec<Result<Claimed, StoreError>>,
    /// One for each settle.
    pub settles: Vec<Result<Settled, StoreError>>,
    /// One for each renewal.
    pub renews: Vec<Result<Renewed, StoreError>>,
    /// One for each step.
    pub steps: Vec<Result<Kept, StoreError>>,
}

impl Batch {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many writes there are in it.
    pub fn len(&self) -> usize {
        self.claims.len() + self.settles.len() + self.renews.len() + self.steps.len()
    }

    /// The same error for every item.
    pub fn all_failed(&self, error: &StoreError) -> Committed {
        Committed {
            claims: self.claims.iter().map(|_| Err(error.clone())).collect(),
            settles: self.settles.iter().map(|_| Err(error.clone())).collect(),
            renews: self.renews.iter().map(|_| Err(error.clone())).collect(),
            steps: self.steps.iter().map(|_| Err(error.clone())).collect(),
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
    /// Whether the claimant follows an owner that had begun and whose fate is unknown.
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
    /// The record lives at least this long from now.
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
    /// Nothing happened: the next arrival executes.
    Released,
    /// Nobody knows.
    InDoubt(Doubt),
}

impl Settlement {
    /// The state it leads to.
    pub fn tag(&self) -> StateTag {
        match self {
            Self::Completed(_) => StateTag::Completed,
            Self::Failed(_) => StateTag::Failed,
            Self::Released => StateTag::Released,
            Self::InDoubt(_) => StateTag::InDoubt,
        }
    }

    /// The outcome it stores, if any.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Completed(outcome) | Self::Failed(outcome) => Some(outcome),
            Self::Released | Self::InDoubt(_) => None,
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

/// What was found under an id.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The store's clock.
    pub now: Timestamp,
    /// The record, if there is one.
    pub record: Option<Box<Record>>,
}

/// What a purge did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Finished records removed.
    pub deleted: usize,
    /// Finished records reduced to a tombstone.
    pub buried: usize,
    /// Pending records that failed because nobody came for them.
    pub timed_out: usize,
}

impl Purged {
    /// How many records it touched.
    pub fn total(&self) -> usize {
        self.deleted + self.buried + self.timed_out
    }
}

/// Which records to list; what is `None` does not matter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only of this scope.
    pub scope: Option<Scope>,
    /// Only in this state.
    pub state: Option<StateTag>,
}

/// Which page of a listing.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Only ids after this one.
    pub after: Option<OperationId>,
    /// At most this many.
    pub limit: usize,
}

/// One record of a listing.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The id it is stored under.
    pub id: OperationId,
    /// What it says; [`StoreError::Damaged`] or [`StoreError::TooNew`] if it cannot be read.
    pub summary: Result<Summary, StoreError>,
}

/// A record without its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Which operation.
    pub operation: Operation,
    /// Where it stands, whose it is and until when.
    pub stamp: Stamp,
    /// What may be done if the owner vanishes.
    pub recovery: Recovery,
    /// When its life began.
    pub created_at: Timestamp,
    /// When it entered its state.
    pub changed_at: Timestamp,
    /// Until when a finished record is answered from.
    pub expires_at: Timestamp,
}

/// What a failing store means for the caller.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written. Trying again is safe.
    #[error("the store is unavailable; nothing was written")]
    Unavailable(#[source] Cause),
    /// It may or may not have been written. Load before deciding.
    #[error("the store did not confirm the write")]
    Unconfirmed(#[source] Cause),
    /// What is stored is not what was written. Refuse and raise an alarm.
    #[error("the stored record is damaged")]
    Damaged(#[source] Cause),
    /// What is stored was written by a newer version. Refuse until this process is upgraded.
    #[error("the stored record was written by a newer version")]
    TooNew(#[source] Cause),
}

/// What made a store fail, kept as it was.
pub type Cause = Arc<dyn Error + Send + Sync>;

impl StoreError {
    /// Nothing was written.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(cause.into()))
    }

    /// It may or may not have been written.
    pub fn unconfirmed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unconfirmed(Arc::from(cause.into()))
    }

    /// What is stored is not what was written.
    pub fn damaged(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Damaged(Arc::from(cause.into()))
    }

    /// What is stored was written by a newer version.
    pub fn too_new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::TooNew(Arc::from(cause.into()))
    }
}
