//! A hint inside one process: something was emitted.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// Rung by whoever emitted, after the commit; heard by the relay of the same process. Clones share
/// it.
///
/// A ring is never lost: all who wait hear it, who asks after it was rung hears it at once, and many
/// rings are heard as one.
#[derive(Clone, Default)]
pub struct Bell {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    rings: u64,
    heard: u64,
    waiting: Vec<Waker>,
}

impl Bell {
    /// A bell nobody has rung.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes whoever waits, or the next one to ask.
    pub fn ring(&self) {
        let waiting = {
            let mut shared = self.lock();
            shared.rings += 1;
            std::mem::take(&mut shared.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ends when it has been rung since somebody last heard it, or since this was first asked.
    pub fn rung(&self) -> Rung {
        Rung { bell: self.clone(), asked_at: None }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").field("rings", &self.lock().rings).finish_non_exhaustive()
    }
}

/// Waits for a [`Bell`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct Rung {
    bell: Bell,
    /// How often it had been rung when this began to wait.
    asked_at: Option<u64>,
}

impl Future for Rung {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let bell = self.bell.clone();
        let mut shared = bell.lock();
        if shared.heard.min(*self.asked_at.get_or_insert(shared.rings)) < shared.rings {
            shared.heard = shared.rings;
            return Poll::Ready(());
        }
        if !shared.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            shared.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
