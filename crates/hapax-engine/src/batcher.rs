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
    OperationId, Store, StoreError, Timestamp,
    limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX},
    store::{Batch, Claim, Claimed, Committed, KeepStep, Kept, Renew, Renewed, Settle, Settled},
};
use tokio::{runtime::Handle, sync::oneshot, time::Instant};

use crate::{digest::DigestHasher, engine::Inner};

/// Writes waiting for a lane.
#[derive(Debug)]
pub(crate) struct Batcher {
    queue: Mutex<Queue>,
    claims_max: usize,
}

#[derive(Debug)]
struct Queue {
    writes: VecDeque<Write>,
    claims: usize,
    lanes_free: usize,
}

#[derive(Debug)]
enum Write {
    Claim(Claim, Asker<Claimed>),
    Settle(Settle, Asker<Settled>),
    Renew(Renew, Asker<Renewed>),
    Step(KeepStep, Asker<Kept>),
}

type Asker<T> = oneshot::Sender<Result<T, StoreError>>;

impl Batcher {
    pub(crate) fn new(lanes: usize, claims_max: usize) -> Self {
        let lanes_free = lanes.max(1);
        let queue = Queue { writes: VecDeque::new(), claims: 0, lanes_free };
        Self { queue: Mutex::new(queue), claims_max }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> Inner<S> {
    /// Has a claim written; `None` if too many are waiting.
    pub(crate) async fn commit_claim(
        self: &Arc<Self>,
        claim: Claim,
    ) -> Option<Result<Claimed, StoreError>> {
        if self.batcher.lock().claims >= self.batcher.claims_max {
            return None;
        }
        Some(self.commit(|asker| Write::Claim(claim, asker)).await)
    }

    /// Has a settle written. There is room for it: only the winner of a claim brings one.
    pub(crate) async fn commit_settle(
        self: &Arc<Self>,
        settle: Settle,
    ) -> Result<Settled, StoreError> {
        self.commit(|asker| Write::Settle(settle, asker)).await
    }

    /// Has a renewal written. There is room for it: only the winner of a claim brings one.
    pub(crate) async fn commit_renew(
        self: &Arc<Self>,
        renew: Renew,
    ) -> Result<Renewed, StoreError> {
        self.commit(|asker| Write::Renew(renew, asker)).await
    }

    /// Has a step kept. There is room for it: only the winner of a claim brings one, one at a time.
    pub(crate) async fn commit_step(self: &Arc<Self>, keep: KeepStep) -> Result<Kept, StoreError> {
        self.commit(|asker| Write::Step(keep, asker)).await
    }

    async fn commit<T>(
        self: &Arc<Self>,
        write: impl FnOnce(Asker<T>) -> Write,
    ) -> Result<T, StoreError> {
        let (asker, answer) = oneshot::channel();
        if let Some(lane) = Lane::after(self, write(asker)) {
            lane.commit_next().await;
        }
        let unanswered = || StoreError::unconfirmed("the commit ended without an answer");
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }
}

/// The right to commit one batch at a time. Given up, it passes to what waits meanwhile.
struct Lane<S: Store>(Arc<Inner<S>>);

impl<S: Store> Lane<S> {
    /// Queues a write, and takes a lane if one is free.
    fn after(inner: &Arc<Inner<S>>, write: Write) -> Option<Self> {
        let mut queue = inner.batcher.lock();
        queue.claims += usize::from(write.is_claim());
        queue.writes.push_back(write);
        let free = queue.lanes_free > 0;
        queue.lanes_free -= usize::from(free);
        free.then(|| Self(Arc::clone(inner)))
    }

    async fn commit_next(&self) {
        let (batch, askers) = self.0.batcher.lock().take();
        let counters = &self.0.counters;
        counters.batches.one();
        counters.batched_writes.add(askers.len());
        let asked_at = Instant::now();
        // Askers that are dropped unanswered know that nobody knows.
        let Some(committed) = commit(&*self.0.store, batch).await else { return };
        counters.spread.committed(askers.len(), asked_at.elapsed());
        if let Some(now) = store_now(&committed) {
            self.0.clock.heard(now, asked_at);
        }
        askers.answer(committed);
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

impl<S: Store> Drop for Lane<S> {
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
async fn commit<S: Store>(store: &S, batch: Batch) -> Option<Committed> {
    let mut committing = pin!(store.commit(batch));
    let polled = std::future::poll_fn(|cx| {
        let poll = AssertUnwindSafe(|| committing.as_mut().poll(cx));
        catch_unwind(poll).map_or(Poll::Ready(None), |poll| poll.map(Some))
    });
    polled.await
}

impl Queue {
    /// The next batch: the oldest writes that fit, each operation once.
    fn take(&mut self) -> (Batch, Askers) {
        let (mut batch, mut askers) = (Batch::default(), Askers::default());
        let room = self.writes.len().min(BATCH_WRITES_MAX);
        let mut ids = HashSet::with_capacity_and_hasher(room, DigestHasher::default());
        let (mut bytes, mut deferred) = (0, VecDeque::new());
        while ids.len() < BATCH_WRITES_MAX
            && let Some(write) = self.writes.pop_front()
        {
            bytes += write.bytes();
            let fits = ids.is_empty() || bytes <= BATCH_BYTES_MAX;
            if !fits || !ids.insert(write.id()) {
                deferred.push_back(write);
                if !fits {
                    break;
                }
                continue;
            }
            self.claims -= usize::from(write.is_claim());
            match write {
                Write::Claim(claim, asker) => {
                    batch.claims.push(claim);
                    askers.claims.push(asker);
                }
                Write::Settle(settle, asker) => {
                    batch.settles.push(settle);
                    askers.settles.push(asker);
                }
                Write::Renew(renew, asker) => {
                    batch.renews.push(renew);
                    askers.renews.push(asker);
                }
                Write::Step(keep, asker) => {
                    batch.steps.push(keep);
                    askers.steps.push(asker);
                }
            }
        }
        while let Some(write) = deferred.pop_back() {
            self.writes.push_front(write);
        }
        (batch, askers)
    }
}

#[derive(Default)]
struct Askers {
    claims: Vec<Asker<Claimed>>,
    settles: Vec<Asker<Settled>>,
    renews: Vec<Asker<Renewed>>,
    steps: Vec<Asker<Kept>>,
}

impl Askers {
    fn len(&self) -> usize {
        self.claims.len() + self.settles.len() + self.renews.len() + self.steps.len()
    }

    fn answer(self, committed: Committed) {
        assert_eq!(self.claims.len(), committed.claims.len(), "a store answers every claim");
        assert_eq!(self.settles.len(), committed.settles.len(), "a store answers every settle");
        assert_eq!(self.renews.len(), committed.renews.len(), "a store answers every renewal");
        assert_eq!(self.steps.len(), committed.steps.len(), "a store answers every step");
        tell(self.claims, committed.claims);
        tell(self.settles, committed.settles);
        tell(self.renews, committed.renews);
        tell(self.steps, committed.steps);
    }
}

/// The latest instant the store wrote or looked with.
fn store_now(committed: &Committed) -> Option<Timestamp> {
    let claims = committed.claims.iter().flatten().map(|claimed| match claimed {
        Claimed::Won { now } | Claimed::Found { now, .. } => Some(*now),
    });
    let settles = committed.settles.iter().flatten().map(|settled| match settled {
        Settled::Done { now } => Some(*now),
        Settled::Lost => None,
    });
    let renews = committed.renews.iter().flatten().map(|renewed| match renewed {
        Renewed::Done { now } => Some(*now),
        Renewed::Lost => None,
    });
    let steps = committed.steps.iter().flatten().map(|kept| match kept {
        Kept::Done { now } => Some(*now),
        Kept::Lost => None,
    });
    claims.chain(settles).chain(renews).chain(steps).flatten().max()
}

/// Those who no longer listen do not need the answer: what they began is finished detached.
fn tell<T>(askers: Vec<Asker<T>>, answers: Vec<Result<T, StoreError>>) {
    for (asker, answer) in askers.into_iter().zip(answers) {
        drop(asker.send(answer));
    }
}

impl Write {
    fn is_claim(&self) -> bool {
        matches!(self, Self::Claim(..))
    }

    fn id(&self) -> OperationId {
        match self {
            Self::Claim(claim, _) => claim.operation.id(),
            Self::Settle(settle, _) => settle.id,
            Self::Renew(renew, _) => renew.id,
            Self::Step(keep, _) => keep.id,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Claim(claim, _) => claim.weight(),
            Self::Settle(settle, _) => settle.weight(),
            Self::Renew(..) => 0,
            Self::Step(keep, _) => keep.weight(),
        }
    }
}
