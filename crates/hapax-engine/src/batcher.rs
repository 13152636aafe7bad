//! Group commit: what callers bring while one commit is under way goes out together in the next.
//!
//! A lone write never waits for company: a lane that is free takes it at once.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use hapax_core::{
    OperationId, Store, StoreError,
    limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX},
    store::{Batch, Claim, Claimed, Committed, Entry, Renew, Renewed, Settle, Settled},
};
use tokio::sync::{Notify, oneshot, watch};

use crate::{clock::StoreClock, digest::DigestHasher, stats::Counters};

pub(crate) type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// Writes waiting for a lane.
#[derive(Debug)]
pub(crate) struct Batcher {
    queue: Mutex<Queue>,
    ready: Notify,
    claims_max: usize,
}

#[derive(Debug, Default)]
struct Queue {
    writes: VecDeque<Write>,
    claims: usize,
}

#[derive(Debug)]
enum Write {
    Claim(Claim, Asker<Claimed>),
    Settle(Settle, Asker<Settled>),
    Renew(Renew, Asker<Renewed>),
}

type Asker<T> = oneshot::Sender<Result<T, StoreError>>;

impl Batcher {
    pub(crate) fn new(claims_max: usize) -> Self {
        Self { queue: Mutex::default(), ready: Notify::new(), claims_max }
    }

    /// Queues a claim; `None` if too many are waiting.
    pub(crate) fn claim(&self, claim: Claim) -> Option<Answer<Claimed>> {
        let (asker, answer) = oneshot::channel();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.claims >= self.claims_max {
            return None;
        }
        queue.claims += 1;
        queue.writes.push_back(Write::Claim(claim, asker));
        drop(queue);
        self.ready.notify_one();
        Some(answer)
    }

    /// Queues a settle. There is room for it: only the winner of a claim brings one.
    pub(crate) fn settle(&self, settle: Settle) -> Answer<Settled> {
        let (asker, answer) = oneshot::channel();
        self.push(Write::Settle(settle, asker));
        answer
    }

    /// Queues a renewal. There is room for it: only the winner of a claim brings one.
    pub(crate) fn renew(&self, renew: Renew) -> Answer<Renewed> {
        let (asker, answer) = oneshot::channel();
        self.push(Write::Renew(renew, asker));
        answer
    }

    /// Commits batch after batch until told to stop.
    pub(crate) async fn run_lane<S: Store>(
        &self,
        store: &Arc<S>,
        clock: &StoreClock,
        counters: &Counters,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            let (batch, askers) = self.take();
            if batch.is_empty() {
                tokio::select! {
                    biased;
                    () = self.ready.notified() => continue,
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
            counters.batches.one();
            counters.batched_writes.add(askers.len());
            askers.answer(commit(store, batch).await, clock);
            // Lets those just answered bring their next write into the next batch.
            tokio::task::yield_now().await;
        }
    }

    fn push(&self, write: Write) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.writes.push_back(write);
        drop(queue);
        self.ready.notify_one();
    }

    /// The next batch: the oldest writes that fit, each operation once.
    fn take(&self) -> (Batch, Askers) {
        let (mut batch, mut askers) = (Batch::default(), Askers::default());
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = HashSet::with_capacity_and_hasher(
            queue.writes.len().min(BATCH_WRITES_MAX),
            DigestHasher::default(),
        );
        let (mut bytes, mut deferred) = (0, VecDeque::new());
        while ids.len() < BATCH_WRITES_MAX
            && let Some(write) = queue.writes.pop_front()
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
            match write {
                Write::Claim(claim, asker) => {
                    queue.claims -= 1;
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
            }
        }
        while let Some(write) = deferred.pop_back() {
            queue.writes.push_front(write);
        }
        let more = !queue.writes.is_empty();
        drop(queue);
        if more {
            self.ready.notify_one();
        }
        (batch, askers)
    }
}

/// Commits in a task of its own, so that a store that panics costs one batch and not the lane.
async fn commit<S: Store>(store: &Arc<S>, batch: Batch) -> Committed {
    let lost = StoreError::unconfirmed("the store's task ended without an answer");
    let failed = batch.all_failed(&lost);
    let store = Arc::clone(store);
    tokio::spawn(async move { store.commit(batch).await }).await.unwrap_or(failed)
}

#[derive(Default)]
struct Askers {
    claims: Vec<Asker<Claimed>>,
    settles: Vec<Asker<Settled>>,
    renews: Vec<Asker<Renewed>>,
}

impl Askers {
    fn len(&self) -> usize {
        self.claims.len() + self.settles.len() + self.renews.len()
    }

    fn answer(self, committed: Committed, clock: &StoreClock) {
        assert_eq!(self.claims.len(), committed.claims.len(), "a store answers every claim");
        assert_eq!(self.settles.len(), committed.settles.len(), "a store answers every settle");
        assert_eq!(self.renews.len(), committed.renews.len(), "a store answers every renewal");
        let claims = committed.claims.iter().flatten().map(|claimed| match claimed {
            Claimed::Won { now } | Claimed::Found { now, .. } => Some(*now),
        });
        let settles = committed.settles.iter().flatten().map(|settled| match settled {
            Settled::Done { now } => Some(*now),
            Settled::Lost => None,
        });
        if let Some(now) = claims.chain(settles).flatten().max() {
            clock.heard(now);
        }
        tell(self.claims, committed.claims);
        tell(self.settles, committed.settles);
        tell(self.renews, committed.renews);
    }
}

/// Those who no longer listen do not need the answer: what they began is finished detached.
fn tell<T>(askers: Vec<Asker<T>>, answers: Vec<Result<T, StoreError>>) {
    for (asker, answer) in askers.into_iter().zip(answers) {
        drop(asker.send(answer));
    }
}

impl Write {
    fn id(&self) -> OperationId {
        match self {
            Self::Claim(claim, _) => claim.operation.id(),
            Self::Settle(settle, _) => settle.id,
            Self::Renew(renew, _) => renew.id,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Claim(claim, _) => match &claim.entry {
                Entry::Run { request, .. } => request.as_ref().map_or(0, bytes::Bytes::len),
                Entry::Queue { request, .. } => request.len(),
            },
            Self::Settle(settle, _) => settle.to.outcome().map_or(0, hapax_core::Outcome::weight),
            Self::Renew(..) => 0,
        }
    }
}
