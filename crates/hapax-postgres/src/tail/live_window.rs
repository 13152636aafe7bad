//! What the stream has brought, shared by the task that reads it and those who look.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use hapax_core::outbox::{Bell, Position, Stored};
use tokio::sync::watch;

use super::{
    status::{TailMode, TailReason, TailStatus},
    window::{TailWindow, WindowRoom},
};

pub(super) struct Live {
    current: Mutex<Option<Current>>,
    progress: watch::Sender<StreamProgress>,
    mode: watch::Sender<(TailMode, Instant)>,
    bell: Bell,
    room: WindowRoom,
    pub(super) lag_bytes: AtomicU64,
    pub(super) kept_bytes: AtomicU64,
    pub(super) stream_looks: AtomicU64,
    pub(super) table_looks: AtomicU64,
}

/// The stream of one connection.
pub(super) struct Current {
    pub(super) slot: Arc<str>,
    pub(super) window: TailWindow,
    /// Where it must have come to before it is waited for again.
    behind: Option<u64>,
}

/// How far which stream is: everything that committed up to there has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StreamProgress {
    pub(super) slot: Option<Arc<str>>,
    pub(super) through: u64,
}

impl Live {
    pub(super) fn new(bell: Bell, room: WindowRoom) -> Self {
        Self {
            current: Mutex::new(None),
            progress: watch::Sender::new(StreamProgress::default()),
            mode: watch::Sender::new((TailMode::Table(TailReason::Starting), now())),
            bell,
            room,
            lag_bytes: AtomicU64::new(0),
            kept_bytes: AtomicU64::new(0),
            stream_looks: AtomicU64::new(0),
            table_looks: AtomicU64::new(0),
        }
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// A stream that brings every commit above this position.
    pub(super) fn begin(&self, slot: &Arc<str>, floor: Position, through: u64) {
        let window = TailWindow::new(floor, self.room);
        let slot = Arc::clone(slot);
        *self.lock() = Some(Current { slot: Arc::clone(&slot), window, behind: None });
        self.progress.send_replace(StreamProgress { slot: Some(slot), through });
        self.turn(TailMode::Streaming);
    }

    /// The stream is gone, and what it brought is forgotten.
    pub(super) fn end(&self, cause: &str) {
        *self.lock() = None;
        self.progress.send_replace(StreamProgress::default());
        self.lag_bytes.store(0, Ordering::Relaxed);
        self.kept_bytes.store(0, Ordering::Relaxed);
        self.turn(TailMode::Table(TailReason::Lost { cause: cause.into() }));
    }

    pub(super) fn keep(&self, event: Stored, xid: u64) {
        if let Some(current) = &mut *self.lock() {
            current.window.keep(event, xid);
        }
    }

    pub(super) fn leave(&self, position: Position) {
        if let Some(current) = &mut *self.lock() {
            current.window.leave(position);
        }
    }

    /// Everything that committed up to here has come.
    pub(super) fn advance(&self, through: u64) {
        let further = self.progress.send_if_modified(|progress| {
            let further = progress.slot.is_some() && progress.through < through;
            if further {
                progress.through = through;
            }
            further
        });
        if !further {
            return;
        }
        let caught_up = self
            .lock()
            .as_mut()
            .is_some_and(|current| current.behind.take_if(|behind| *behind <= through).is_some());
        if caught_up {
            self.turn(TailMode::Streaming);
            self.bell.ring();
        }
    }

    /// The stream had not come to this place when it was waited for: until it has, the table is
    /// read without waiting.
    pub(super) fn fell_behind(&self, slot: &Arc<str>, place: u64) {
        if let Some(current) = self.lock().as_mut().filter(|current| current.slot == *slot)
            && self.progress.borrow().through < place
        {
            current.behind = Some(place);
            self.turn(TailMode::Table(TailReason::Behind));
        }
    }

    /// What the stream has brought, unless it is not there or behind.
    pub(super) fn current<T>(&self, read: impl FnOnce(&Current) -> T) -> Option<T> {
        self.lock().as_ref().filter(|current| current.behind.is_none()).map(read)
    }

    pub(super) fn progress(&self) -> watch::Receiver<StreamProgress> {
        self.progress.subscribe()
    }

    pub(super) fn mode(&self) -> watch::Receiver<(TailMode, Instant)> {
        self.mode.subscribe()
    }

    pub(super) fn status(&self) -> TailStatus {
        let (mode, since) = self.mode.borrow().clone();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TailStatus {
            mode,
            since,
            lag_bytes: count(&self.lag_bytes),
            kept_bytes: count(&self.kept_bytes),
            stream_looks: count(&self.stream_looks),
            table_looks: count(&self.table_looks),
        }
    }

    fn turn(&self, mode: TailMode) {
        self.mode.send_if_modified(|current| {
            let other = current.0 != mode;
            if other {
                *current = (mode, now());
            }
            other
        });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
