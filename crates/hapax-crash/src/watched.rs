//! A store with places to die before and after every call.

use hapax_core::{
    Attempt, Note, Noted, OperationId, Record, Salt, Store, StoreError, StoredStep,
    clock::{ClockMark, ClockReading},
    store::{Batch, Committed, Filter, Listed, Loaded, Page, Purged},
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
pub struct Watched<S> {
    store: S,
    doom: Doom,
}

impl<S: Store> Watched<S> {
    /// The store, with that end awaiting its caller.
    pub fn new(store: S, doom: Doom) -> Self {
        Self { store, doom }
    }

    async fn between<T>(&self, before: &str, call: impl Future<Output = T>, after: &str) -> T {
        self.doom.pass(before);
        let answer = call.await;
        self.doom.pass(after);
        answer
    }
}

impl<S: Store> Store for Watched<S> {
    fn salt(&self) -> Salt {
        self.store.salt()
    }

    fn lanes(&self) -> usize {
        self.store.lanes()
    }

    async fn commit(&self, batch: Batch) -> Committed {
        let call = self.store.commit(batch);
        self.between("store.commit.before", call, "store.commit.after").await
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let call = self.store.load(ids);
        self.between("store.load.before", call, "store.load.after").await
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        let call = self.store.steps(id);
        self.between("store.steps.before", call, "store.steps.after").await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        let call = self.store.overdue(limit);
        self.between("store.overdue.before", call, "store.overdue.after").await
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        let call = self.store.purge(limit);
        self.between("store.purge.before", call, "store.purge.after").await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.store.clock().await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.store.keep_clock(mark).await
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
