//! What is known of one partition: what may be handed out, what is being worked on, and how far
//! everything is final.

use std::collections::BTreeMap;

use rdkafka::error::KafkaError;
use tokio::{sync::oneshot, time::Instant};

use crate::consumer::Incoming;

/// How a commit ended, for those who wait for it.
pub(super) type Committed = Result<(), KafkaError>;

#[derive(Debug)]
pub(super) struct PartitionState {
    /// Which time it is that this consumer has the partition.
    pub(super) term: u64,
    /// Nothing more is handed out: it goes to another consumer.
    pub(super) revoked: bool,
    /// Fetched and not handed out, or put back; in order of offset.
    ready: BTreeMap<i64, ReadyMessage>,
    /// Handed out and not settled.
    busy: BTreeMap<i64, Incoming>,
    /// After the last that was fetched.
    next: Option<i64>,
    commits: Option<Commits>,
}

#[derive(Debug)]
struct ReadyMessage {
    incoming: Incoming,
    not_before: Option<Instant>,
}

/// What the broker was told.
#[derive(Debug, Default)]
struct Commits {
    done: Option<i64>,
    under_way: Option<i64>,
    waiting: Vec<(i64, oneshot::Sender<Committed>)>,
}

/// What a partition has to give.
#[derive(Debug)]
pub(super) enum Offer {
    Message(Incoming),
    /// Its next message was put back until then.
    At(Instant),
    Nothing,
}

impl PartitionState {
    /// A partition nothing was fetched from. Where the consumer keeps its offsets itself, the broker
    /// is told nothing.
    pub(super) fn new(term: u64, keeps_offsets: bool) -> Self {
        Self {
            term,
            revoked: false,
            ready: BTreeMap::new(),
            busy: BTreeMap::new(),
            next: None,
            commits: (!keeps_offsets).then(Commits::default),
        }
    }

    /// Takes in what was fetched.
    pub(super) fn fetched(&mut self, offset: i64, incoming: Incoming) {
        if self.next.is_none_or(|next| offset >= next) {
            self.next = Some(offset + 1);
            self.ready.insert(offset, ReadyMessage { incoming, not_before: None });
        }
    }

    /// How many wait to be handed out.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Hands out the first that is not settled and not being worked on; nothing overtakes it.
    pub(super) fn offer(&mut self, now: Instant) -> Offer {
        let Some(entry) = self.ready.first_entry().filter(|_| !self.revoked) else {
            return Offer::Nothing;
        };
        match entry.get().not_before {
            Some(at) if at > now => Offer::At(at),
            _ => {
                let (offset, ready) = entry.remove_entry();
                self.busy.insert(offset, ready.incoming.clone());
                Offer::Message(ready.incoming)
            }
        }
    }

    /// A message is to be handed out again, not before this.
    pub(super) fn put_back(&mut self, offset: i64, not_before: Instant) {
        if let Some(incoming) = self.busy.remove(&offset) {
            self.ready.insert(offset, ReadyMessage { incoming, not_before: Some(not_before) });
        }
    }

    /// A message is final. Where that lets a commit say so, what tells when it has been heard.
    pub(super) fn done(&mut self, offset: i64) -> Option<oneshot::Receiver<Committed>> {
        self.busy.remove(&offset);
        if self.low()? <= offset {
            return None;
        }
        self.hear_of(offset + 1)
    }

    /// What tells when everything that is final has been committed, if it was not yet.
    pub(super) fn settle_up(&mut self) -> Option<oneshot::Receiver<Committed>> {
        let low = self.low()?;
        self.hear_of(low)
    }

    fn hear_of(&mut self, offset: i64) -> Option<oneshot::Receiver<Committed>> {
        let commits = self.commits.as_mut()?;
        if commits.done.is_some_and(|done| done >= offset) {
            return None;
        }
        let (told, heard) = oneshot::channel();
        commits.waiting.push((offset, told));
        Some(heard)
    }

    /// The offset to commit now: one commit at a time, and none for nothing.
    pub(super) fn commit(&mut self) -> Option<i64> {
        let low = self.low()?;
        let commits = self.commits.as_mut()?;
        if commits.under_way.is_some() || commits.waiting.is_empty() {
            return None;
        }
        commits.under_way = Some(low);
        Some(low)
    }

    /// A commit is to be tried again.
    pub(super) fn uncommitted(&mut self) {
        if let Some(commits) = &mut self.commits {
            commits.under_way = None;
        }
    }

    /// The partition may be another's already: what is final here is not to be said any more.
    pub(super) fn lose(&mut self) {
        self.commits = None;
    }

    /// A commit ended.
    pub(super) fn committed(&mut self, offset: i64, committed: &Committed) {
        let Some(commits) = &mut self.commits else { return };
        commits.under_way = None;
        if committed.is_ok() {
            commits.done = commits.done.max(Some(offset));
        }
        let decided = |upto: &i64| committed.is_err() || *upto <= offset;
        let (decided, waiting) =
            std::mem::take(&mut commits.waiting).into_iter().partition(|(upto, _)| decided(upto));
        commits.waiting = waiting;
        let decided: Vec<(i64, oneshot::Sender<Committed>)> = decided;
        for (_, told) in decided {
            // Whoever does not wait any more need not hear of it.
            let _ = told.send(committed.clone());
        }
    }

    /// Everything before this is final; `None` as long as nothing was fetched.
    fn low(&self) -> Option<i64> {
        let first = |offset: Option<&i64>| offset.copied().unwrap_or(i64::MAX);
        let open = first(self.busy.keys().next()).min(first(self.ready.keys().next()));
        self.next.map(|next| next.min(open))
    }
}
