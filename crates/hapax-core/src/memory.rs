//! The store in memory: the reference for all others, and the one tests use.
//!
//! It keeps nothing across a restart, so it protects nothing across one.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    apply,
    clock::{ClockMark, ClockReading},
    codec::Row,
    fingerprint::Salt,
    incarnation::{
        Incarnation, IncarnationChange, IncarnationMark, IncarnationReading, ProcessMark,
        Remembered,
    },
    limits::{NOTE_KEPT, PAGE_RECORDS_MAX},
    note::{Note, NoteRow, Noted, Reason},
    operation::{OperationId, Tenant},
    record::Record,
    settle::Attempt,
    step::{self, StepRow, StoredStep},
    store::{
        self, Claim, DataKeyId, DataKeyState, Filter, KeepStep, KeyStorage, Listed, Loaded,
        MasterKeyUse, Over, Page, Purged, StoreError, StoredDataKey, TenantDataKeys, WrappedKey,
        Write, Written,
    },
    time::Timestamp,
};

/// Records in memory. Clones share them.
///
/// ```
/// use hapax_core::{Salt, Store, Timestamp, memory};
///
/// // A clock that stands still, as tests like it; `hapax_engine::wall_clock` is the time of day.
/// let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// assert_eq!(store.salt(), Salt::from_bytes([7; 32]));
/// ```
pub struct Store {
    shared: Arc<Shared>,
    /// Of this handle alone, as connections are.
    admitted: Arc<Mutex<Option<Incarnation>>>,
}

impl Clone for Store {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), admitted: Arc::default() }
    }
}

struct Shared {
    salt: Salt,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    rows: Mutex<BTreeMap<OperationId, Row>>,
    /// By operation and number. Locked after the rows.
    steps: Mutex<BTreeMap<(OperationId, i32), StepRow>>,
    /// In the order they came.
    notes: Mutex<Vec<NoteRow>>,
    /// What was kept of the clock.
    mark: Mutex<Option<ClockMark>>,
    past: Mutex<Past>,
    /// The wrapped data keys of tenants.
    data_keys: Mutex<BTreeMap<DataKeyId, StoredDataKey>>,
}

/// Which database this claims to be, and what is kept in it about that.
#[derive(Debug, Clone)]
struct Past {
    incarnation: Incarnation,
    synchronous: bool,
    mark: Option<IncarnationMark>,
    processes: BTreeMap<i64, ProcessMark>,
}

/// Everything in a store at one moment, as a backup has it. For tests.
pub struct StoreSnapshot {
    rows: BTreeMap<OperationId, Row>,
    steps: BTreeMap<(OperationId, i32), StepRow>,
    notes: Vec<NoteRow>,
    mark: Option<ClockMark>,
    past: Past,
}

impl Store {
    /// An empty store that reads its time from `clock`.
    pub fn new(salt: Salt, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let (clock, rows) = (Box::new(clock), Mutex::default());
        let (steps, notes, mark) = (Mutex::default(), Mutex::default(), Mutex::default());
        let past = Mutex::new(Past {
            incarnation: Incarnation::new("memory", 0),
            synchronous: false,
            mark: None,
            processes: BTreeMap::new(),
        });
        let data_keys = Mutex::default();
        let shared = Arc::new(Shared { salt, clock, rows, steps, notes, mark, past, data_keys });
        Self { shared, admitted: Arc::default() }
    }

    /// Everything that is stored now. For tests.
    pub fn snapshot(&self) -> StoreSnapshot {
        StoreSnapshot {
            rows: self.rows().clone(),
            steps: Self::steps(self).clone(),
            notes: Self::notes(self).clone(),
            mark: *self.mark(),
            past: self.past().clone(),
        }
    }

    /// Forgets everything since the snapshot, and says it is this incarnation. For tests.
    pub fn restore(&self, snapshot: &StoreSnapshot, incarnation: Incarnation) {
        // Records are compared with the incarnation under their lock, so both change at once.
        let mut rows = self.rows();
        *self.past() = Past { incarnation, ..snapshot.past.clone() };
        rows.clone_from(&snapshot.rows);
        Self::steps(self).clone_from(&snapshot.steps);
        Self::notes(self).clone_from(&snapshot.notes);
        *self.mark() = snapshot.mark;
    }

    /// Forgets the records since the snapshot, and says nothing of it. For tests.
    pub fn forget_records(&self, since: &StoreSnapshot) {
        self.rows().clone_from(&since.rows);
    }

    /// Says it is this incarnation, and whether commits wait for a standby. For tests.
    pub fn become_incarnation(&self, incarnation: Incarnation, synchronous: bool) {
        let mut past = self.past();
        (past.incarnation, past.synchronous) = (incarnation, synchronous);
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.shared.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses whoever was told of another incarnation. To be asked with the rows locked.
    fn check_admitted(&self) -> Result<(), StoreError> {
        let admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        match &*admitted {
            Some(admitted) if *admitted != self.past().incarnation => Err(StoreError::unavailable(
                "the store is another incarnation than the admitted one",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Changes a stored row behind the machine's back, as a failing disk would. For tests.
    pub fn tamper(&self, id: OperationId, change: impl FnOnce(&mut Row)) {
        if let Some(row) = self.rows().get_mut(&id) {
            change(row);
        }
    }

    /// Changes the stored steps of an operation behind the machine's back. For tests.
    pub fn tamper_steps(&self, id: OperationId, change: impl FnMut(&mut StepRow)) {
        self.steps()
            .range_mut((id, i32::MIN)..=(id, i32::MAX))
            .map(|(_, row)| row)
            .for_each(change);
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<OperationId, Row>> {
        self.shared.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn steps(&self) -> MutexGuard<'_, BTreeMap<(OperationId, i32), StepRow>> {
        self.shared.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_steps(&self, id: OperationId) {
        self.steps().retain(|(of, _), _| *of != id);
    }

    fn perform(
        &self,
        rows: &mut BTreeMap<OperationId, Row>,
        now: Timestamp,
        write: &Write,
    ) -> Result<Written, StoreError> {
        let id = write.id();
        let found = read(rows, now, id)?;
        let Some(record) = apply::write(now, found.as_ref(), write) else {
            return Ok(Written::Refused { now, record: found.map(Box::new) });
        };
        match write {
            Write::Claim(Claim { over: Over::Nothing | Over::Spent(_), .. }) => {
                self.forget_steps(id);
                rows.insert(id, Row::seal(&record));
            }
            Write::Claim(_) | Write::Settle(_) | Write::Renew(_) => {
                rows.insert(id, Row::seal(&record));
            }
            Write::Step(keep) => self.keep_step(now, keep),
        }
        Ok(Written::Done { now })
    }

    fn keep_step(&self, now: Timestamp, keep: &KeepStep) {
        let row = StepRow::seal(now, keep);
        let mut steps = self.steps();
        let place = steps.entry((row.id, row.number)).or_insert_with(|| row.clone());
        if place.life != row.life {
            *place = row;
        }
    }

    fn notes(&self) -> MutexGuard<'_, Vec<NoteRow>> {
        self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_notes(&self, now: Timestamp, limit: usize) {
        let mut left = limit;
        self.notes().retain(|note| {
            let forgotten = left > 0 && Timestamp::from_micros(note.at).plus(NOTE_KEPT) <= now;
            left -= usize::from(forgotten);
            !forgotten
        });
    }

    fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }

    fn mark(&self) -> MutexGuard<'_, Option<ClockMark>> {
        self.shared.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data_keys(&self) -> MutexGuard<'_, BTreeMap<DataKeyId, StoredDataKey>> {
        self.shared.data_keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_clock(&self) -> ClockReading {
        ClockReading { now: self.now(), mark: *self.mark() }
    }
}

impl store::Store for Store {
    fn salt(&self) -> Salt {
        self.shared.salt
    }

    fn lanes(&self) -> usize {
        1
    }

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        let (now, mut rows) = (self.now(), self.rows());
        if let Err(error) = self.check_admitted() {
            return vec![Err(error); batch.len()];
        }
        batch.iter().map(|write| self.perform(&mut rows, now, write)).collect()
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let (now, rows) = (self.now(), self.rows());
        if let Err(error) = self.check_admitted() {
            return vec![Err(error); ids.len()];
        }
        let loaded = ids.into_iter().map(|id| {
            let record = read(&rows, now, id)?.map(Box::new);
            Ok(Loaded { now, record })
        });
        loaded.collect()
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        let (now, rows) = (self.now(), self.rows());
        let Some(record) = read(&rows, now, id)? else { return Ok(Vec::new()) };
        let steps = Self::steps(self);
        let kept = steps.range((id, i32::MIN)..=(id, i32::MAX)).map(|(_, row)| row.clone());
        Ok(step::open_life(record.created_at, kept.collect())?)
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        let (now, rows) = (self.now(), self.rows());
        let records = rows.values().filter_map(|row| row.clone().open(now).ok());
        let overdue = records.filter(|record| apply::is_overdue(now, record));
        Ok(overdue.take(limit.min(PAGE_RECORDS_MAX)).collect())
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        let now = self.read_clock().trusted();
        self.forget_notes(now, limit.min(PAGE_RECORDS_MAX));
        let mut rows = self.rows();
        let mut purged = Purged::default();
        let ids: Vec<_> = rows.keys().copied().collect();
        for id in ids {
            if purged.total() >= limit.min(PAGE_RECORDS_MAX) {
                break;
            }
            let Ok(Some(record)) = read(&rows, now, id) else { continue };
            match apply::purge(now, &record) {
                apply::Purge::Keep => {}
                apply::Purge::Delete => {
                    rows.remove(&id);
                    self.forget_steps(id);
                    purged.deleted += 1;
                }
                apply::Purge::Bury(record) => {
                    rows.insert(id, Row::seal(&record));
                    self.forget_steps(id);
                    purged.buried += 1;
                }
                apply::Purge::TimeOut(record) => {
                    rows.insert(id, Row::seal(&record));
                    purged.timed_out += 1;
                }
            }
        }
        Ok(purged)
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        Ok(self.read_clock())
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        *self.mark() = Some(mark);
        Ok(())
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        let (now, past) = (self.now(), self.past());
        Ok(IncarnationReading {
            now,
            incarnation: past.incarnation.clone(),
            synchronous: past.synchronous,
            mark: past.mark.clone(),
            remembered: Remembered::NotKept,
            processes: past.processes.values().cloned().collect(),
        })
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        let mut past = self.past();
        let is_expected = past.mark.as_ref().map(|mark| mark.position) == change.expected
            && past.incarnation == change.mark.incarnation;
        if is_expected {
            past.mark = Some(change.mark);
            past.processes.retain(|process, _| !change.gone.contains(process));
            past.processes.extend(change.present.map(|present| (present.process, present)));
        }
        Ok(is_expected)
    }

    fn admit(&self, incarnation: &Incarnation) {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        *admitted = Some(incarnation.clone());
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        let rows = self.rows();
        let after = rows.iter().filter(|(id, _)| page.after.is_none_or(|after| after < **id));
        let wanted = |row: &Row| {
            filter.tenant.as_ref().is_none_or(|tenant| tenant.as_str() == row.tenant)
                && filter.scope.as_ref().is_none_or(|scope| scope.as_str() == row.scope)
                && filter.state.is_none_or(|state| state as i16 == row.state)
        };
        let matching = after.filter(|(_, row)| wanted(row)).take(page.limit.min(PAGE_RECORDS_MAX));
        let listed = matching
            .map(|(id, row)| Listed { id: *id, summary: row.summary().map_err(StoreError::from) });
        Ok(listed.collect())
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        let (now, mut rows) = (self.now(), self.rows());
        let found = read(&rows, now, attempt.id)?;
        let withdrawn = apply::withdraws(found.as_ref(), &attempt);
        if withdrawn {
            rows.remove(&attempt.id);
        }
        Ok(withdrawn)
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        let row = NoteRow::seal(self.now(), &note);
        self.notes().push(row);
        Ok(())
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        let notes = Self::notes(self);
        let matching: Vec<_> = notes.iter().filter(|note| note.id == id).collect();
        let passed_over = matching.len().saturating_sub(limit.min(PAGE_RECORDS_MAX));
        matching[passed_over..].iter().map(|row| Ok((*row).clone().open()?)).collect()
    }

    async fn watch(&self, _: OperationId) {
        std::future::pending().await
    }
}

impl fmt::Debug for StoreSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSnapshot").field("records", &self.rows.len()).finish_non_exhaustive()
    }
}

impl KeyStorage for Store {
    async fn data_keys(&self, tenant: Tenant) -> Result<TenantDataKeys, StoreError> {
        let (now, all) = (self.now(), Self::data_keys(self));
        let last = DataKeyId { tenant: tenant.clone(), version: u32::MAX };
        let keys = all.range(DataKeyId { tenant, version: 0 }..=last);
        Ok(TenantDataKeys { now, keys: keys.map(|(_, key)| key.clone()).collect() })
    }

    async fn add_data_key(&self, id: DataKeyId, wrapped: WrappedKey) -> Result<bool, StoreError> {
        let (created_at, mut all) = (self.now(), Self::data_keys(self));
        let is_new = !all.contains_key(&id);
        if is_new {
            let state = DataKeyState::Kept(wrapped);
            all.insert(id.clone(), StoredDataKey { id, created_at, state });
        }
        Ok(is_new)
    }

    async fn rewrap_data_key(
        &self,
        id: DataKeyId,
        seen: WrappedKey,
        wrapped: WrappedKey,
    ) -> Result<bool, StoreError> {
        let mut all = Self::data_keys(self);
        let stored = all.get_mut(&id).filter(|key| key.state == DataKeyState::Kept(seen));
        Ok(stored.map(|key| key.state = DataKeyState::Kept(wrapped)).is_some())
    }

    async fn erase_data_keys(&self, tenant: Tenant, reason: Reason) -> Result<usize, StoreError> {
        let (at, mut all) = (self.now(), Self::data_keys(self));
        let kept = all
            .values_mut()
            .filter(|key| key.id.tenant == tenant && matches!(key.state, DataKeyState::Kept(_)));
        let erased =
            kept.map(|key| key.state = DataKeyState::Erased { at, reason: reason.clone() });
        Ok(erased.count())
    }

    async fn list_data_keys(
        &self,
        after: Option<DataKeyId>,
        limit: usize,
    ) -> Result<Vec<StoredDataKey>, StoreError> {
        let all = Self::data_keys(self);
        let following = all.values().filter(|key| after.as_ref().is_none_or(|id| *id < key.id));
        Ok(following.take(limit.min(PAGE_RECORDS_MAX)).cloned().collect())
    }

    async fn master_keys(&self) -> Result<Vec<MasterKeyUse>, StoreError> {
        let mut uses = BTreeMap::new();
        for key in Self::data_keys(self).values() {
            if let DataKeyState::Kept(wrapped) = &key.state {
                *uses.entry(wrapped.master.clone()).or_insert(0) += 1;
            }
        }
        Ok(uses.into_iter().map(|(master, keys)| MasterKeyUse { master, keys }).collect())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("records", &self.rows().len()).finish_non_exhaustive()
    }
}

fn read(
    rows: &BTreeMap<OperationId, Row>,
    now: Timestamp,
    id: OperationId,
) -> Result<Option<Record>, StoreError> {
    Ok(rows.get(&id).cloned().map(|row| row.open(now)).transpose()?)
}
