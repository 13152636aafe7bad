//! The memory store as a process sees it through a bad connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use hapax_core::{
    Attempt, Note, Noted, OperationId, Record, Salt, Store, StoreError, StoredStep,
    clock::{ClockMark, ClockReading},
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    memory,
    store::{Filter, Listed, Loaded, Page, Purged, Write, Written},
};
use tokio::{sync::mpsc, time::sleep};

use super::dice::Dice;

/// One process's way to the shared store.
#[derive(Debug)]
pub(super) struct FaultyStore {
    inner: memory::Store,
    dice: Dice,
    life: ProcessLife,
}

/// Whether a process is alive, and how it tells that it is not.
#[derive(Debug, Clone)]
pub(super) struct ProcessLife {
    alive: Arc<AtomicBool>,
    process: usize,
    deaths: mpsc::UnboundedSender<usize>,
}

impl ProcessLife {
    pub(super) fn new(process: usize, deaths: mpsc::UnboundedSender<usize>) -> Self {
        Self { alive: Arc::new(AtomicBool::new(true)), process, deaths }
    }

    pub(super) fn is_over(&self) -> bool {
        !self.alive.load(Relaxed)
    }

    /// Dies here and now: nothing after this line happens in this process.
    pub(super) async fn end<T>(&self) -> T {
        if self.alive.swap(false, Relaxed) {
            // Nobody listens only when the run is over.
            _ = self.deaths.send(self.process);
        }
        std::future::pending().await
    }

    /// Goes on only while the process lives.
    pub(super) async fn goes_on(&self) {
        if self.is_over() {
            std::future::pending().await
        }
    }
}

/// What happens to one call.
enum StoreCallFate {
    Fine,
    Refused,
    RequestLost,
    AnswerLost,
    HalfWritten,
    Late,
    CrashBefore,
    CrashAfter,
}

impl FaultyStore {
    pub(super) fn new(inner: memory::Store, dice: Dice, life: ProcessLife) -> Self {
        Self { inner, dice, life }
    }

    fn fate(&self) -> StoreCallFate {
        let faults = &self.dice.plan().store;
        let kinds = [
            (faults.refused, StoreCallFate::Refused),
            (faults.request_lost, StoreCallFate::RequestLost),
            (faults.answer_lost, StoreCallFate::AnswerLost),
            (faults.half_written, StoreCallFate::HalfWritten),
            (faults.late, StoreCallFate::Late),
            (faults.crash_before, StoreCallFate::CrashBefore),
            (faults.crash_after, StoreCallFate::CrashAfter),
        ];
        self.dice.fault(kinds).unwrap_or(StoreCallFate::Fine)
    }

    async fn delay(&self) {
        sleep(self.dice.up_to(self.dice.plan().store.delay_max)).await;
        self.life.goes_on().await;
    }

    /// A call that changes nothing a caller must account for.
    async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.life.goes_on().await;
        let fate = self.fate();
        self.delay().await;
        match fate {
            StoreCallFate::Fine | StoreCallFate::Late | StoreCallFate::HalfWritten => {
                let answer = call.await;
                self.delay().await;
                answer
            }
            StoreCallFate::Refused | StoreCallFate::RequestLost => {
                Err(StoreError::unavailable("refused"))
            }
            StoreCallFate::AnswerLost => {
                drop(call.await);
                Err(StoreError::unavailable("answer lost"))
            }
            StoreCallFate::CrashBefore => self.life.end().await,
            StoreCallFate::CrashAfter => {
                drop(call.await);
                self.life.end().await
            }
        }
    }
}

impl Store for FaultyStore {
    fn salt(&self) -> Salt {
        self.inner.salt()
    }

    fn lanes(&self) -> usize {
        2
    }

    async fn commit(&self, mut batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        self.life.goes_on().await;
        let fate = self.fate();
        self.delay().await;
        let count = batch.len();
        let unconfirmed = vec![Err(StoreError::unconfirmed("no answer")); count];
        match fate {
            StoreCallFate::Fine => {
                let answers = self.inner.commit(batch).await;
                self.delay().await;
                answers
            }
            StoreCallFate::Refused => vec![Err(StoreError::unavailable("refused")); count],
            StoreCallFate::RequestLost => unconfirmed,
            StoreCallFate::AnswerLost => {
                self.inner.commit(batch).await;
                self.delay().await;
                unconfirmed
            }
            StoreCallFate::HalfWritten => {
                batch.truncate(count / 2);
                self.inner.commit(batch).await;
                unconfirmed
            }
            StoreCallFate::Late => {
                let (inner, late) = (self.inner.clone(), self.dice.up_to(self.dice.plan().lease));
                tokio::spawn(async move {
                    sleep(late).await;
                    inner.commit(batch).await;
                });
                unconfirmed
            }
            StoreCallFate::CrashBefore => self.life.end().await,
            StoreCallFate::CrashAfter => {
                self.inner.commit(batch).await;
                self.life.end().await
            }
        }
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let count = ids.len();
        let loaded = self.call(async { Ok(self.inner.load(ids).await) }).await;
        loaded.unwrap_or_else(|error| (0..count).map(|_| Err(error.clone())).collect())
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.call(self.inner.steps(id)).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.call(self.inner.overdue(limit)).await
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        self.call(self.inner.purge(limit)).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.call(self.inner.clock()).await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.call(self.inner.keep_clock(mark)).await
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.call(self.inner.incarnation()).await
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        self.call(self.inner.keep_incarnation(change)).await
    }

    fn admit(&self, incarnation: &Incarnation) {
        self.inner.admit(incarnation);
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.call(self.inner.list(filter, page)).await
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.call(self.inner.withdraw(attempt)).await
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.call(self.inner.note(note)).await
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.call(self.inner.notes(id, limit)).await
    }

    async fn watch(&self, _: OperationId) {
        std::future::pending().await
    }
}
