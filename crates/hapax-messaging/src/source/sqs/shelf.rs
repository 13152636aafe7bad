//! What was received and is not yet handed on.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

use crate::sqs::SqsMessage;

/// A message that was received.
#[derive(Debug)]
pub(super) struct ShelvedMessage {
    pub(super) message: SqsMessage,
    /// What its order is kept for, in a queue that keeps one.
    pub(super) group: Option<String>,
    /// When it was received, or its time was extended.
    pub(super) at: Instant,
}

/// SQS hands over several messages of a group at once. They leave the shelf one at a time: the next
/// when the one before it is done. If that one is put back, so are those behind it.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    ready: VecDeque<ShelvedMessage>,
    /// Of each group of which a message has left the shelf, or is ready to: those behind it.
    groups: HashMap<String, VecDeque<ShelvedMessage>>,
}

impl Shelf {
    /// Puts messages on it, in the order they were received in.
    pub(super) fn put(&mut self, received: impl IntoIterator<Item = ShelvedMessage>) {
        for received in received {
            match &received.group {
                None => self.ready.push_back(received),
                Some(group) => match self.groups.get_mut(group) {
                    Some(behind) => behind.push_back(received),
                    None => {
                        self.groups.insert(group.clone(), VecDeque::new());
                        self.ready.push_back(received);
                    }
                },
            }
        }
    }

    /// What can be handed on first.
    pub(super) fn first(&mut self) -> Option<&mut ShelvedMessage> {
        self.ready.front_mut()
    }

    /// Takes it.
    pub(super) fn take(&mut self) -> Option<ShelvedMessage> {
        self.ready.pop_front()
    }

    /// A message of this group is done: the next one is ready.
    pub(super) fn done(&mut self, group: &str) {
        let Some(behind) = self.groups.get_mut(group) else { return };
        match behind.pop_front() {
            Some(next) => self.ready.push_back(next),
            None => drop(self.groups.remove(group)),
        }
    }

    /// A message of this group is not done: gives back those that were behind it.
    pub(super) fn back(&mut self, group: &str) -> VecDeque<ShelvedMessage> {
        self.groups.remove(group).unwrap_or_default()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ready.len() + self.groups.values().map(VecDeque::len).sum::<usize>()
    }
}
