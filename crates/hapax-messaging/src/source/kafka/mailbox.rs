//! Where the thread that polls, the consumer that asks, and its receipts meet.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, KafkaResult},
};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, timeout},
};

use super::{
    callbacks::GroupCallbacks,
    partition_state::{Committed, Offer, PartitionState},
};
use crate::consumer::{Incoming, Partition, SourceError};

/// How long a commit may take until it is given up.
const COMMIT_PATIENCE: Duration = Duration::from_secs(10);
/// Above so many fetched messages nothing more is fetched.
const WAITING_MAX: usize = 1000;
/// Below so many it goes on.
const WAITING_LOW: usize = 250;

#[derive(Default)]
pub(super) struct Mailbox {
    state: Mutex<MailboxState>,
    changed: Notify,
    /// Taken away when it is closed. Never held together with the state.
    consumer: Mutex<Option<Arc<BaseConsumer<GroupCallbacks>>>>,
    /// Rung for the thread that commits.
    bell: Mutex<Option<mpsc::SyncSender<()>>>,
}

#[derive(Default)]
struct MailboxState {
    /// What the group gave us.
    ours: BTreeSet<Partition>,
    /// What was started of it, and what is not released yet.
    books: BTreeMap<Partition, PartitionState>,
    events: VecDeque<GroupEvent>,
    failure: Option<KafkaError>,
    terms: u64,
    /// Who had the last turn.
    served: Option<Partition>,
    paused: bool,
}

/// What the group decided.
#[derive(Debug)]
pub(super) enum GroupEvent {
    Assigned(Vec<Partition>),
    Revoked(Vec<Partition>),
}

/// What comes next.
#[derive(Debug)]
pub(super) enum NextStep {
    Event(GroupEvent),
    /// A message, and the term of its partition.
    Message(Incoming, u64),
    Failure(KafkaError),
}

impl Mailbox {
    pub(super) fn open(
        &self,
        consumer: Arc<BaseConsumer<GroupCallbacks>>,
        bell: mpsc::SyncSender<()>,
    ) {
        *lock(&self.consumer) = Some(consumer);
        *lock(&self.bell) = Some(bell);
    }

    pub(super) fn consumer(&self) -> Option<Arc<BaseConsumer<GroupCallbacks>>> {
        lock(&self.consumer).clone()
    }

    /// Takes the consumer away, for who closes it.
    pub(super) fn close(&self) -> Option<Arc<BaseConsumer<GroupCallbacks>>> {
        let consumer = lock(&self.consumer).take();
        lock(&self.bell).take();
        // Those who wait for a commit hear that there will be none.
        lock(&self.state).books.clear();
        consumer
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.consumer).is_none()
    }

    /// Waits for whatever comes next. What is taken is returned at once, so a call may be dropped.
    pub(super) async fn next(&self) -> NextStep {
        loop {
            let changed = self.changed.notified();
            let at = match lock(&self.state).next(Instant::now()) {
                Ok(next) => return next,
                Err(at) => at,
            };
            match at {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    pub(super) fn fetched(&self, partition: &Partition, offset: i64, incoming: Incoming) {
        if let Some(book) = lock(&self.state).books.get_mut(partition) {
            book.fetched(offset, incoming);
        }
        self.changed.notify_one();
    }

    pub(super) fn failed(&self, error: KafkaError) {
        lock(&self.state).failure = Some(error);
        self.changed.notify_one();
    }

    pub(super) fn assigned(&self, partitions: Vec<Partition>) {
        let mut state = lock(&self.state);
        state.ours.extend(partitions.iter().cloned());
        state.events.push_back(GroupEvent::Assigned(partitions));
        drop(state);
        self.changed.notify_one();
    }

    /// Partitions go to another member, or are another's already if they were `lost`.
    pub(super) fn revoked(&self, partitions: Vec<Partition>, lost: bool) {
        let mut state = lock(&self.state);
        for partition in &partitions {
            state.ours.remove(partition);
            if let Some(book) = state.books.get_mut(partition) {
                book.revoked = true;
                if lost {
                    book.lose();
                }
            }
        }
        state.events.push_back(GroupEvent::Revoked(partitions));
        drop(state);
        self.changed.notify_one();
    }

    /// Begins to fetch a partition, unless it was taken away meanwhile.
    pub(super) fn start(&self, partition: &Partition, from: Option<i64>) -> KafkaResult<()> {
        {
            let mut state = lock(&self.state);
            if !state.ours.contains(partition) {
                return Ok(());
            }
            state.terms += 1;
            let book = PartitionState::new(state.terms, from.is_some());
            state.books.insert(partition.clone(), book);
        }
        let list = listed([(partition, from)])?;
        self.with(|consumer| consumer.incremental_assign(&list)).unwrap_or(Ok(()))
    }

    /// Commits what is final in these partitions and lets go of them.
    pub(super) async fn release(&self, partitions: &[Partition]) -> KafkaResult<()> {
        for partition in partitions {
            let last =
                lock(&self.state).books.get_mut(partition).and_then(PartitionState::settle_up);
            if let Some(last) = last {
                self.commit();
                // Whoever gets the partition next begins a little earlier then, and knows better.
                let _ = timeout(COMMIT_PATIENCE, last).await;
            }
        }
        let started: Vec<_> = {
            let mut state = lock(&self.state);
            partitions.iter().filter(|it| state.books.remove(*it).is_some()).collect()
        };
        let list = listed(started.into_iter().map(|partition| (partition, None)))?;
        self.with(|consumer| consumer.incremental_unassign(&list)).unwrap_or(Ok(()))
    }

    /// A message of this term is final; ends when the broker has been told, if it can be.
    pub(super) async fn done(
        &self,
        partition: &Partition,
        offset: i64,
        term: u64,
    ) -> Result<(), SourceError> {
        const DOING: &str = "say that a message is done";
        let heard = {
            let mut state = lock(&self.state);
            let book = state.books.get_mut(partition).filter(|book| book.term == term);
            let gone = || SourceError::new(DOING, "its partition was taken away");
            book.ok_or_else(gone)?.done(offset)
        };
        let Some(heard) = heard else { return Ok(()) };
        self.commit();
        match timeout(COMMIT_PATIENCE, heard).await {
            Ok(Ok(committed)) => committed.map_err(|error| SourceError::new(DOING, error)),
            Ok(Err(closed @ oneshot::error::RecvError { .. })) => {
                Err(SourceError::new(DOING, closed))
            }
            Err(elapsed) => Err(SourceError::new(DOING, elapsed)),
        }
    }

    /// A message of this term is to be handed out again.
    pub(super) fn put_back(&self, partition: &Partition, offset: i64, term: u64, after: Duration) {
        let mut state = lock(&self.state);
        if let Some(book) = state.books.get_mut(partition).filter(|book| book.term == term) {
            book.put_back(offset, Instant::now() + after);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// What to commit now.
    pub(super) fn to_commit(&self) -> Option<(Vec<(Partition, i64)>, TopicPartitionList)> {
        let mut state = lock(&self.state);
        let due = state.books.iter_mut().filter_map(|(partition, book)| {
            book.commit().map(|offset| (partition.clone(), offset))
        });
        let due: Vec<_> = due.collect();
        let list = listed(due.iter().map(|(partition, offset)| (partition, Some(*offset))));
        list.ok().filter(|list| list.count() > 0).map(|list| (due, list))
    }

    pub(super) fn committed(&self, places: &[(Partition, i64)], committed: &Committed) {
        let mut state = lock(&self.state);
        for (partition, offset) in places {
            if let Some(book) = state.books.get_mut(partition) {
                book.committed(*offset, committed);
            }
        }
    }

    /// A commit came at a bad time: those who wait for it go on waiting.
    pub(super) fn uncommitted(&self, places: &[(Partition, i64)]) {
        let mut state = lock(&self.state);
        for (partition, _) in places {
            if let Some(book) = state.books.get_mut(partition) {
                book.uncommitted();
            }
        }
    }

    /// Has what is final committed soon.
    fn commit(&self) {
        if let Some(bell) = &*lock(&self.bell) {
            // Who has rung and was not heard yet need not ring again.
            let _ = bell.try_send(());
        }
    }

    /// Stops fetching while too much is waiting.
    pub(super) fn balance(&self) {
        let (paused, list) = {
            let mut state = lock(&self.state);
            let waiting: usize = state.books.values().map(PartitionState::waiting).sum();
            let paused = if state.paused { waiting > WAITING_LOW } else { waiting > WAITING_MAX };
            if paused == state.paused {
                return;
            }
            state.paused = paused;
            (paused, listed(state.books.keys().map(|partition| (partition, None))))
        };
        let done = list.and_then(|list| {
            let change = |consumer: &BaseConsumer<GroupCallbacks>| match paused {
                true => consumer.pause(&list),
                false => consumer.resume(&list),
            };
            self.with(change).unwrap_or(Ok(()))
        });
        if let Err(error) = done {
            tracing::warn!(%error, paused, "Kafka did not change how fast it fetches");
        }
    }

    fn with<R>(&self, work: impl FnOnce(&BaseConsumer<GroupCallbacks>) -> R) -> Option<R> {
        lock(&self.consumer).as_deref().map(work)
    }
}

impl MailboxState {
    /// What comes next, or until when there is nothing.
    fn next(&mut self, now: Instant) -> Result<NextStep, Option<Instant>> {
        if let Some(event) = self.events.pop_front() {
            return Ok(NextStep::Event(event));
        }
        if let Some(error) = self.failure.clone() {
            return Ok(NextStep::Failure(error));
        }
        // Partitions take turns: those behind the last one first, then all.
        let behind = self.served.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut at: Option<Instant> = None;
        for from in [behind, Bound::Unbounded] {
            for (partition, book) in self.books.range_mut((from, Bound::Unbounded)) {
                match book.offer(now) {
                    Offer::Message(incoming) => {
                        self.served = Some(partition.clone());
                        return Ok(NextStep::Message(incoming, book.term));
                    }
                    Offer::At(then) => at = Some(at.map_or(then, |at| at.min(then))),
                    Offer::Nothing => {}
                }
            }
        }
        Err(at)
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("books", &lock(&self.state).books).finish_non_exhaustive()
    }
}

/// Partitions and offsets as the library wants them.
fn listed<'a>(
    places: impl IntoIterator<Item = (&'a Partition, Option<i64>)>,
) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (partition, offset) in places {
        let mut place = list.add_partition(&partition.source, partition.number);
        if let Some(offset) = offset {
            place.set_offset(Offset::Offset(offset))?;
        }
    }
    Ok(list)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
