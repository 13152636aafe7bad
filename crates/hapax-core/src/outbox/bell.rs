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
/// A ring is never lost: who asks after it was rung hears it at once, and many rings are heard as
/// one.
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

    /// Ends when it has been rung since somebody last heard it.
    pub fn rung(&self) -> Rung {
        Rung { bell: self.clone() }
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
}

impl Future for Rung {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.bell.lock();
        if shared.heard < shared.rings {
            shared.heard = shared.rings;
            return Poll::Ready(());
        }
        if !shared.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            shared.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
