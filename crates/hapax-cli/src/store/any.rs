//! One type for every store, so that what is built on stores is compiled once.

use hapax::{
    Attempt, Note, Noted, OperationId, Record, Salt, Store, StoreError, StoredStep,
    clock::{ClockMark, ClockReading},
    memory, postgres, sqlite,
    store::{Batch, Committed, Filter, Listed, Loaded, Page, Purged},
};

/// Any store this program can open. Clones share it.
#[derive(Debug, Clone)]
pub(crate) enum AnyStore {
    Memory(memory::Store),
    Sqlite(sqlite::Store),
    Postgres(postgres::Store),
}

/// Does the same with whichever store it is.
macro_rules! each {
    ($any:expr, $store:ident => $call:expr) => {
        match $any {
            AnyStore::Memory($store) => $call,
            AnyStore::Sqlite($store) => $call,
            AnyStore::Postgres($store) => $call,
        }
    };
}

impl Store for AnyStore {
    fn salt(&self) -> Salt {
        each!(self, store => store.salt())
    }

    fn lanes(&self) -> usize {
        each!(self, store => store.lanes())
    }

    async fn commit(&self, batch: Batch) -> Committed {
        each!(self, store => store.commit(batch).await)
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        each!(self, store => store.load(ids).await)
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        each!(self, store => store.steps(id).await)
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        each!(self, store => store.overdue(limit).await)
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        each!(self, store => store.purge(limit).await)
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        each!(self, store => store.clock().await)
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        each!(self, store => store.keep_clock(mark).await)
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        each!(self, store => store.list(filter, page).await)
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        each!(self, store => store.withdraw(attempt).await)
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        each!(self, store => store.note(note).await)
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        each!(self, store => store.notes(id, limit).await)
    }

    async fn watch(&self, id: OperationId) {
        each!(self, store => store.watch(id).await);
    }
}
