//! The contract between the machine and whatever keeps its records.
//!
//! A store states facts and holds no policy: it writes if what it finds is what the writer
//! expects, and says what it found. Each write touches one key and is atomic by itself; a batch is
//! not, so an engine with only single-key conditional writes can implement it. Durations are turned
//! into instants by the store's own clock, and every answer carries that clock's `now`.

mod data_key;
mod dyn_store;
mod error;
mod listing;
mod scheme;
mod write;

pub use self::{
    data_key::{
        DATA_KEY_FORMAT, DataKeyId, DataKeyRow, DataKeyState, KeyStorage, MasterKeyUse,
        StoredDataKey, TenantDataKeys, WrappedKey,
    },
    dyn_store::DynStore,
    error::{Cause, StoreError},
    listing::{Filter, Listed, Page, Summary},
    scheme::StoreScheme,
    write::{By, Claim, Entry, KeepStep, Over, Renew, Settle, Settlement, Write, Written},
};
use crate::{
    clock::{ClockMark, ClockReading},
    fingerprint::Salt,
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    note::{Note, Noted},
    operation::OperationId,
    record::Record,
    settle::Attempt,
    step::StoredStep,
    time::Timestamp,
};

/// Keeps records. Proven by the conformance suite in `hapax-verify`.
pub trait Store: Send + Sync + 'static {
    /// The salt this store was created with.
    fn salt(&self) -> Salt;

    /// How many commits gain from running at the same time.
    fn lanes(&self) -> usize;

    /// Performs a batch of writes durably and answers one by one, in order.
    ///
    /// No two writes of a batch name the same operation. When it returns, every write that was
    /// answered with [`Written::Done`] has reached stable storage.
    fn commit(
        &self,
        batch: Vec<Write>,
    ) -> impl Future<Output = Vec<Result<Written, StoreError>>> + Send;

    /// Removes durably the record of an attempt that claimed over nothing and has begun nothing, as if
    /// it had never been; `false` if it is not, or no longer, running as the first of its key.
    ///
    /// Only for whoever knows that the key is nobody's: a key that is used keeps its fence.
    fn withdraw(&self, attempt: Attempt) -> impl Future<Output = Result<bool, StoreError>> + Send;

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
    /// one, their steps with them, and lets pending ones past retention fail with
    /// [`Outcome::never_run`](crate::Outcome::never_run) for another window.
    ///
    /// Retention is judged by [`ClockReading::trusted`], whatever the clock says.
    ///
    /// Also removes up to `limit` notes older than [`NOTE_KEPT`](crate::limits::NOTE_KEPT), which
    /// are not counted.
    fn purge(&self, limit: usize) -> impl Future<Output = Result<Purged, StoreError>> + Send;

    /// What the store's clock says, and what was kept of it.
    fn clock(&self) -> impl Future<Output = Result<ClockReading, StoreError>> + Send;

    /// Keeps this of the store's clock durably, in place of what was kept before.
    fn keep_clock(&self, mark: ClockMark) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Which database this is now, and what is kept in it about its past. Answered by whichever is
    /// reached, admitted or not.
    fn incarnation(&self) -> impl Future<Output = Result<IncarnationReading, StoreError>> + Send;

    /// Keeps this durably, unless the position is not the expected one or the database not the one the mark
    /// names: then `false`, and nothing is written.
    fn keep_incarnation(
        &self,
        change: IncarnationChange,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// From now on, records are read and written in this incarnation alone; any other database that is reached
    /// in its place is refused as unavailable. Before it is told, a store takes whichever is there.
    fn admit(&self, incarnation: &Incarnation);

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
    /// Finished records removed, and records of messages past their consumer's retention.
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
