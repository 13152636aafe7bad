//! Simulated time: it passes from one event to the next.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    time::Duration,
};

/// What is going to happen, in order of time; at the same time in the order it was planned.
pub(super) struct EventQueue<E> {
    heap: BinaryHeap<Reverse<QueuedEvent<E>>>,
    planned: u64,
}

struct QueuedEvent<E> {
    at: Duration,
    order: u64,
    event: E,
}

impl<E> EventQueue<E> {
    pub(super) fn new() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }

    pub(super) fn plan(&mut self, at: Duration, event: E) {
        self.planned += 1;
        self.heap.push(Reverse(QueuedEvent { at, order: self.planned, event }));
    }

    /// The next event and its time.
    pub(super) fn next(&mut self) -> Option<(Duration, E)> {
        self.heap.pop().map(|Reverse(planned)| (planned.at, planned.event))
    }
}

impl<E> Ord for QueuedEvent<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<E> PartialOrd for QueuedEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for QueuedEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for QueuedEvent<E> {}
