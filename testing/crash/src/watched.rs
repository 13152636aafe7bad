//! A store with places to die before and after every call.

use hapax_core::{
    Attempt, DynStore, Note, Noted, OperationId, Record, Salt, Store, StoreError, StoredStep,
    clock::{ClockMark, ClockReading},
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    store::{Filter, Listed, Loaded, Page, Purged, Write, Written},
};

use crate::place::Doom;

/// The places around a store's calls.
pub const PLACES: &[&str] = &[
    "store.commit.before",
    "store.commit.after",
    "store.load.before",
    "store.load.after",
    "store.overdue.before",
    "store.overdue.after",
    "store.purge.before",
    "store.purge.after",
];

/// The places around the call that only an operation with steps makes.
pub const STEP_PLACES: &[&str] = &["store.steps.before", "store.steps.after"];

/// A store whose caller may die right before and right after each call.
#[derive(Debug)]
pub struct Watched {
    store: DynStore,
    doom: Doom,
}

impl Watched {
    /// The store, with that end awaiting its caller.
    pub fn new(store: DynStore, doom: Doom) -> Self {
        Self { store, doom }
    }
}

impl Store for Watched {
    fn salt(&self) -> Salt {
        self.store.salt()
    }

    fn lanes(&self) -> usize {
        self.store.lanes()
    }

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        self.doom.around("store.commit", self.store.commit(batch)).await
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        self.doom.around("store.load", self.store.load(ids)).await
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.doom.around("store.steps", self.store.steps(id)).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.doom.around("store.overdue", self.store.overdue(limit)).await
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        self.doom.around("store.purge", self.store.purge(limit)).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.store.clock().await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.store.keep_clock(mark).await
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.store.incarnation().await
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        self.store.keep_incarnation(change).await
    }

    fn admit(&self, incarnation: &Incarnation) {
        self.store.admit(incarnation);
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.store.list(filter, page).await
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.store.withdraw(attempt).await
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.store.note(note).await
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.store.notes(id, limit).await
    }

    async fn watch(&self, id: OperationId) {
        self.store.watch(id).await;
    }
}
