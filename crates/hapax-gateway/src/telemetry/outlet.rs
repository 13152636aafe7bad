//! Hands things to somebody who may be slow, without waiting for it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use tokio::sync::mpsc;

/// Hands things over while there is room for them, and counts those there was none for. Clones share the room.
#[derive(Debug)]
pub struct Outlet<T> {
    sender: mpsc::Sender<T>,
    losses: LossCounter,
}

impl<T> Outlet<T> {
    /// Room for this many, and the other end.
    pub fn bounded(capacity: usize) -> (Self, mpsc::Receiver<T>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self { sender, losses: LossCounter::default() }, receiver)
    }

    /// Hands it over, or counts it as lost; never waits.
    pub fn offer(&self, thing: T) {
        if self.sender.try_send(thing).is_err() {
            self.losses.add(1);
        }
    }

    /// What was lost, here or, if it says so, by whoever is at the other end.
    pub fn losses(&self) -> &LossCounter {
        &self.losses
    }
}

impl<T> Clone for Outlet<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), losses: self.losses.clone() }
    }
}

/// Counts what was lost on its way. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct LossCounter(Arc<AtomicU64>);

impl LossCounter {
    /// Counts this many more.
    pub fn add(&self, lost: u64) {
        self.0.fetch_add(lost, Relaxed);
    }

    /// How many there were so far.
    pub fn total(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_counted_and_nobody_waits() {
        let (outlet, mut receiver) = Outlet::bounded(2);
        (0..5).for_each(|number| outlet.offer(number));
        assert_eq!(outlet.losses().total(), 3);
        assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(0), Ok(1)));
        drop(receiver);
        outlet.offer(5);
        assert_eq!(outlet.losses().total(), 4, "nobody is there any more");
    }
}
