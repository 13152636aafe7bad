//! What a probe writes down while it runs.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::Exchange;

/// Most of the exchanges that are kept of one probe: the first ones, and those that a defect is shown by.
const EXCHANGES_KEPT_MAX: usize = 256;

/// The exchanges of one probe, in the order in which they ended, and notes on what was done between them.
#[derive(Debug)]
pub struct ProbeLog {
    began: Instant,
    numbers: AtomicU32,
    exchanges: Mutex<Vec<Exchange>>,
    notes: Mutex<Vec<(Duration, String)>>,
    spreads: Mutex<Vec<Duration>>,
    reach: Mutex<Option<String>>,
}

/// All that one probe wrote down.
#[derive(Debug)]
pub(crate) struct LoggedProbe {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) notes: Vec<(Duration, String)>,
    pub(crate) spreads: Vec<Duration>,
    pub(crate) reach: Option<String>,
}

/// A place in a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogMark {
    number: u32,
    at: Duration,
}

impl ProbeLog {
    /// An empty one, whose time begins now.
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
            numbers: AtomicU32::new(1),
            exchanges: Mutex::default(),
            notes: Mutex::default(),
            spreads: Mutex::default(),
            reach: Mutex::default(),
        }
    }

    /// Since the beginning of the probe.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The number of the next exchange.
    pub fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps an exchange.
    pub fn keep(&self, exchange: &Exchange) {
        let mut kept = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < EXCHANGES_KEPT_MAX {
            kept.push(exchange.clone());
        }
    }

    /// Forgets the exchanges so far: a trial that showed nothing is no evidence, and there are many of them.
    pub fn forget(&self) {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Where the log is now.
    pub(crate) fn mark(&self) -> LogMark {
        LogMark { number: self.numbers.load(Ordering::Relaxed), at: self.elapsed() }
    }

    /// Forgets what came after this: a trial that showed nothing new is no evidence.
    pub(crate) fn forget_since(&self, mark: LogMark) {
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.retain(|exchange| exchange.number < mark.number);
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.retain(|(at, _)| *at < mark.at);
    }

    /// Notes what was done: `the server was killed`, `counted 2 effects`.
    pub fn note(&self, what: impl Into<String>) {
        let note = (self.elapsed(), what.into());
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// Notes how long after the first duplicate's last byte the last one's left.
    pub fn raced(&self, spread: Duration) {
        self.spreads.lock().unwrap_or_else(PoisonError::into_inner).push(spread);
    }

    /// Says how far the probe went, for whoever reads that it passed: `100 other keys between`.
    pub(crate) fn reached(&self, how_far: String) {
        *self.reach.lock().unwrap_or_else(PoisonError::into_inner) = Some(how_far);
    }

    /// All that was kept.
    pub(crate) fn end(self) -> LoggedProbe {
        LoggedProbe {
            exchanges: self.exchanges.into_inner().unwrap_or_else(PoisonError::into_inner),
            notes: self.notes.into_inner().unwrap_or_else(PoisonError::into_inner),
            spreads: self.spreads.into_inner().unwrap_or_else(PoisonError::into_inner),
            reach: self.reach.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }
}
