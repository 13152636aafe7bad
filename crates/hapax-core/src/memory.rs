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
    limits::{NOTE_KEPT, PAGE_RECORDS_MAX},
    note::{Note, NoteRow, Noted},
    operation::OperationId,
    record::Record,
    settle::Attempt,
    step::{self, StepRow, StoredStep},
    store::{
        self, Claim, Filter, KeepStep, Listed, Loaded, Over, Page, Purged, StoreError, Write,
        Written,
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
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
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
}

impl Store {
    /// An empty store that reads its time from `clock`.
    pub fn new(salt: Salt, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let (clock, rows) = (Box::new(clock), Mutex::default());
        let (steps, notes, mark) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { shared: Arc::new(Shared { salt, clock, rows, steps, notes, mark }) }
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
        batch.iter().map(|write| self.perform(&mut rows, now, write)).collect()
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let (now, rows) = (self.now(), self.rows());
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
