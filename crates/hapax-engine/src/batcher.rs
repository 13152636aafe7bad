//! Group commit: what callers bring while one commit is under way goes out together in the next.
//!
//! A lone write never waits for company: whoever brings one while a lane is free commits it there
//! and then, without a task in between. What gathers meanwhile is committed in the background.

use std::{
    collections::{HashSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use hapax_core::{
    DynStore, StoreError,
    limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX},
    store::{Claim, Write, Written},
};
use tokio::{runtime::Handle, sync::oneshot, time::Instant};

use crate::{digest::DigestHasher, engine::Inner};

/// Writes waiting for a lane.
#[derive(Debug)]
pub(crate) struct Batcher {
    queue: Mutex<WriteQueue>,
    claims_max: usize,
}

#[derive(Debug)]
struct WriteQueue {
    writes: VecDeque<(Write, Asker)>,
    claims: usize,
    lanes_free: usize,
    lanes: usize,
    gate: Gate,
}

/// What is let through to the store. It is looked at under the lock that a write is queued under, so nobody
/// passes by what was true before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Everything.
    Open,
    /// What goes on with a record that is there. What is absent, spent or waiting may have been run already.
    Quarantined,
    /// Nothing.
    Closed,
}

impl Gate {
    fn check(self, write: &Write) -> Result<(), NotQueued> {
        match (self, write) {
            (Self::Closed, _) => Err(NotQueued::Closed),
            (Self::Quarantined, Write::Claim(claim)) if !claim.over.follows_an_owner() => {
                Err(NotQueued::Quarantined)
            }
            (Self::Open | Self::Quarantined, _) => Ok(()),
        }
    }
}

/// Why a write did not get as far as the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotQueued {
    /// Too many claims are waiting.
    Overloaded,
    /// It would run what may have been run before.
    Quarantined,
    /// It is being found out what the store has forgotten.
    Closed,
}

impl From<NotQueued> for StoreError {
    fn from(not_queued: NotQueued) -> Self {
        Self::unavailable(match not_queued {
            NotQueued::Overloaded => "too many claims are waiting",
            NotQueued::Quarantined => "the store is quarantined",
            NotQueued::Closed => "it is being found out what the store has forgotten",
        })
    }
}

/// Who waits for the answer to a write.
type Asker = oneshot::Sender<Result<Written, StoreError>>;

impl Batcher {
    pub(crate) fn new(lanes: usize, claims_max: usize) -> Self {
        let lanes = lanes.max(1);
        let (writes, gate) = (VecDeque::new(), Gate::Closed);
        let queue = WriteQueue { writes, claims: 0, lanes_free: lanes, lanes, gate };
        Self { queue: Mutex::new(queue), claims_max }
    }

    pub(crate) fn set_gate(&self, gate: Gate) {
        self.lock().gate = gate;
    }

    pub(crate) fn gate(&self) -> Gate {
        self.lock().gate
    }

    /// Whether nothing waits and nothing is on its way to the store.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.lock();
        queue.writes.is_empty() && queue.lanes_free == queue.lanes
    }

    fn lock(&self) -> MutexGuard<'_, WriteQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Has a claim written, unless it is not to get as far as the store.
    pub(crate) async fn commit_claim(
        self: &Arc<Self>,
        claim: Claim,
    ) -> Result<Result<Written, StoreError>, NotQueued> {
        if self.batcher.lock().claims >= self.batcher.claims_max {
            return Err(NotQueued::Overloaded);
        }
        self.commit_queued(Write::Claim(claim)).await
    }

    /// Has a write made. For anything but a claim there is room: only the winner of a claim brings one.
    pub(crate) async fn commit(self: &Arc<Self>, write: Write) -> Result<Written, StoreError> {
        self.commit_queued(write).await?
    }

    async fn commit_queued(
        self: &Arc<Self>,
        write: Write,
    ) -> Result<Result<Written, StoreError>, NotQueued> {
        let (id, (asker, answer)) = (write.id(), oneshot::channel());
        if let Some(lane) = CommitLane::after(self, write, asker)? {
            lane.commit_next().await;
        }
        let unanswered = || StoreError::unconfirmed("the commit ended without an answer");
        let answer = answer.await.unwrap_or_else(|_| Err(unanswered()));
        if let Ok(Written::Refused { record: Some(found), .. }) = &answer {
            assert_eq!(found.operation.id(), id, "a store answers each write in its place");
        }
        Ok(answer)
    }
}

/// The right to commit one batch at a time. Given up, it passes to what waits meanwhile.
struct CommitLane(Arc<Inner>);

impl CommitLane {
    /// Queues a write, and takes a lane if one is free.
    fn after(inner: &Arc<Inner>, write: Write, asker: Asker) -> Result<Option<Self>, NotQueued> {
        let mut queue = inner.batcher.lock();
        queue.gate.check(&write)?;
        queue.claims += usize::from(is_claim(&write));
        queue.writes.push_back((write, asker));
        let free = queue.lanes_free > 0;
        queue.lanes_free -= usize::from(free);
        Ok(free.then(|| Self(Arc::clone(inner))))
    }

    async fn commit_next(&self) {
        let (batch, askers) = self.0.batcher.lock().take();
        let counters = &self.0.counters;
        counters.batches.one();
        counters.batched_writes.add(askers.len());
        let asked_at = Instant::now();
        // Askers that are dropped unanswered know that nobody knows.
        let Some(answers) = commit(&self.0.store, batch).await else { return };
        counters.spread.committed(askers.len(), asked_at.elapsed());
        if let Some(now) = answers.iter().flatten().map(Written::now).max() {
            self.0.clock.heard(now, asked_at);
        }
        if answers.iter().any(Result::is_err) {
            self.0.past.hurry();
        }
        assert_eq!(askers.len(), answers.len(), "a store answers every write");
        for (asker, answer) in askers.into_iter().zip(answers) {
            // Those who no longer listen do not need it: what they began is finished detached.
            drop(asker.send(answer));
        }
    }

    /// Commits until nothing waits any more.
    async fn drain(self) {
        loop {
            // Lets those just answered bring their next write into the next batch.
            tokio::task::yield_now().await;
            if self.0.batcher.lock().writes.is_empty() {
                return;
            }
            self.commit_next().await;
        }
    }
}

impl Drop for CommitLane {
    fn drop(&mut self) {
        let mut queue = self.0.batcher.lock();
        match Handle::try_current() {
            Ok(runtime) if !queue.writes.is_empty() => {
                drop(queue);
                let inner = Arc::clone(&self.0);
                // The lane is made inside: a runtime that is going away drops the task unpolled.
                runtime.spawn(async move { Self(inner).drain().await });
            }
            Ok(_) | Err(_) => queue.lanes_free += 1,
        }
    }
}

/// Commits so that a store that panics costs one batch and not the lane: `None` if it did.
async fn commit(store: &DynStore, batch: Vec<Write>) -> Option<Vec<Result<Written, StoreError>>> {
    let mut committing = pin!(store.commit(batch));
    let polled = std::future::poll_fn(|cx| {
        let poll = AssertUnwindSafe(|| committing.as_mut().poll(cx));
        catch_unwind(poll).map_or(Poll::Ready(None), |poll| poll.map(Some))
    });
    polled.await
}

impl WriteQueue {
    /// The next batch: the oldest writes that fit, each operation once.
    fn take(&mut self) -> (Vec<Write>, Vec<Asker>) {
        let room = self.writes.len().min(BATCH_WRITES_MAX);
        let (mut batch, mut askers) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let mut ids = HashSet::with_capacity_and_hasher(room, DigestHasher::default());
        let (mut bytes, mut deferred) = (0, VecDeque::new());
        while ids.len() < BATCH_WRITES_MAX
            && let Some((write, asker)) = self.writes.pop_front()
        {
            bytes += write.weight();
            let fits = ids.is_empty() || bytes <= BATCH_BYTES_MAX;
            if !fits || !ids.insert(write.id()) {
                deferred.push_back((write, asker));
                if !fits {
                    break;
                }
                continue;
            }
            self.claims -= usize::from(is_claim(&write));
            batch.push(write);
            askers.push(asker);
        }
        while let Some(waiting) = deferred.pop_back() {
            self.writes.push_front(waiting);
        }
        (batch, askers)
    }
}

fn is_claim(write: &Write) -> bool {
    matches!(write, Write::Claim(_))
}
