//! The reference store, made to fail on request, passes the suite.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use bytes::Bytes;
use hapax_core::{
    Attempt, Faults, Note, Noted, OperationId, Reason, Record, Salt, Store, StoreError, StoredStep,
    Tenant, Timestamp,
    clock::{ClockMark, ClockReading},
    codec,
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    memory,
    store::{
        DataKeyId, Filter, KeyStorage, Listed, Loaded, MasterKeyUse, Page, Purged, StoredDataKey,
        TenantDataKeys, WrappedKey, Write, Written,
    },
};
use hapax_verify::conformance::{Backend, Damage};

hapax_verify::conformance!(Memory);
hapax_verify::data_key_conformance!(Memory);

mod encrypted {
    use hapax_verify::conformance::Encrypted;

    use super::Memory;

    hapax_verify::conformance!(Encrypted<Memory>);
}

/// Rows in memory, under a clock that moves by a microsecond at every look and as tests step it.
#[derive(Debug)]
pub(crate) struct Memory {
    clock: Arc<AtomicI64>,
    rows: memory::Store,
}

/// 2026-01-01T00:00:00Z, in microseconds.
const BEGINNING: i64 = 1_767_225_600_000_000;

impl Backend for Memory {
    type Store = Unreliable;

    const PLACES: &'static [&'static str] = &[
        "memory.commit.before",
        "memory.commit.after",
        "memory.load",
        "memory.steps",
        "memory.overdue",
        "memory.purge.before",
        "memory.purge.after",
    ];

    async fn create() -> Self {
        let clock = Arc::new(AtomicI64::new(BEGINNING));
        let hand = Arc::clone(&clock);
        let rows = memory::Store::new(Salt::from_bytes([7; 32]), move || {
            Timestamp::from_micros(hand.fetch_add(1, Ordering::SeqCst))
        });
        Self { clock, rows }
    }

    async fn open(&self, faults: Faults) -> Unreliable {
        Unreliable { inner: self.rows.clone(), faults }
    }

    async fn step_clock(&self, micros: i64) {
        self.clock.fetch_add(micros, Ordering::SeqCst);
    }

    async fn damage(&self, id: OperationId, damage: Damage) {
        self.rows.tamper(id, |row| match damage {
            Damage::FlippedBodyBit => {
                let sealed = row.outcome.as_mut().unwrap();
                let mut body = sealed.body.to_vec();
                body[0] ^= 1;
                sealed.body = Bytes::from(body);
            }
            Damage::LostOutcome => row.outcome = None,
            Damage::UnknownState => row.state = 99,
            Damage::NewerRow => row.format += 1,
            Damage::NewerOutcome => {
                let sealed = row.outcome.as_mut().unwrap();
                let mut head = sealed.head.to_vec();
                head[0] = codec::FORMAT + 1;
                sealed.head = Bytes::from(head);
            }
            Damage::FlippedStepBit | Damage::NewerStep => {}
        });
        self.rows.tamper_steps(id, |row| match damage {
            Damage::FlippedStepBit => {
                let mut result = row.result.to_vec();
                result[0] ^= 1;
                row.result = Bytes::from(result);
            }
            Damage::NewerStep => row.format += 1,
            Damage::FlippedBodyBit
            | Damage::LostOutcome
            | Damage::UnknownState
            | Damage::NewerRow
            | Damage::NewerOutcome => {}
        });
    }
}

/// The reference with a faulty line to it: calls are lost on the way there or on the way back.
#[derive(Debug)]
pub(crate) struct Unreliable {
    inner: memory::Store,
    faults: Faults,
}

impl Unreliable {
    fn there(&self, place: &'static str) -> Result<(), StoreError> {
        self.faults.at(place).map_err(StoreError::unavailable)
    }

    fn back(&self, place: &'static str) -> Result<(), StoreError> {
        self.faults.at(place).map_err(StoreError::unconfirmed)
    }
}

impl Store for Unreliable {
    fn salt(&self) -> Salt {
        self.inner.salt()
    }

    fn lanes(&self) -> usize {
        self.inner.lanes()
    }

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        let count = batch.len();
        if let Err(error) = self.there("memory.commit.before") {
            return vec![Err(error); count];
        }
        let answers = self.inner.commit(batch).await;
        match self.back("memory.commit.after") {
            Ok(()) => answers,
            Err(error) => vec![Err(error); count],
        }
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        match self.there("memory.load") {
            Ok(()) => self.inner.load(ids).await,
            Err(error) => ids.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.there("memory.steps")?;
        self.inner.steps(id).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.there("memory.overdue")?;
        self.inner.overdue(limit).await
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        self.there("memory.purge.before")?;
        let purged = self.inner.purge(limit).await?;
        self.back("memory.purge.after")?;
        Ok(purged)
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.inner.clock().await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.inner.keep_clock(mark).await
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.inner.incarnation().await
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        self.inner.keep_incarnation(change).await
    }

    fn admit(&self, incarnation: &Incarnation) {
        self.inner.admit(incarnation);
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.inner.list(filter, page).await
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.there("memory.commit.before")?;
        let withdrawn = self.inner.withdraw(attempt).await?;
        self.back("memory.commit.after")?;
        Ok(withdrawn)
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.there("memory.commit.before")?;
        self.inner.note(note).await?;
        self.back("memory.commit.after")
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.inner.notes(id, limit).await
    }

    async fn watch(&self, id: OperationId) {
        self.inner.watch(id).await;
    }
}

impl KeyStorage for Unreliable {
    async fn data_keys(&self, tenant: Tenant) -> Result<TenantDataKeys, StoreError> {
        self.inner.data_keys(tenant).await
    }

    async fn add_data_key(&self, key: DataKeyId, wrapped: WrappedKey) -> Result<bool, StoreError> {
        self.inner.add_data_key(key, wrapped).await
    }

    async fn rewrap_data_key(
        &self,
        key: DataKeyId,
        seen: WrappedKey,
        wrapped: WrappedKey,
    ) -> Result<bool, StoreError> {
        self.inner.rewrap_data_key(key, seen, wrapped).await
    }

    async fn erase_data_keys(&self, tenant: Tenant, reason: Reason) -> Result<usize, StoreError> {
        self.inner.erase_data_keys(tenant, reason).await
    }

    async fn list_data_keys(
        &self,
        after: Option<DataKeyId>,
        limit: usize,
    ) -> Result<Vec<StoredDataKey>, StoreError> {
        self.inner.list_data_keys(after, limit).await
    }

    async fn master_keys(&self) -> Result<Vec<MasterKeyUse>, StoreError> {
        self.inner.master_keys().await
    }
}
