//! Writes down what clients asked and heard, and what really happened.

use std::{
    hash::{DefaultHasher, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hapax_core::{Body, Fence, Outcome};
use tokio::time::Instant;

use crate::history::{
    Call, Digest, FinalState, HistoryEvent, Key, LedgerRun, ObservedAnswer, Request,
};

/// The history of one run. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Recorder {
    began: Instant,
    events: Arc<Mutex<Vec<HistoryEvent>>>,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), events: Arc::default() }
    }

    /// A client asks; the answer to this call is to be recorded too.
    pub(super) fn asked(&self, key: usize, request: u8) -> Call {
        let mut events = self.lock();
        let call = Call(number(events.len()));
        events.push(HistoryEvent::Invoked {
            call,
            key: key_number(key),
            request: Request(request.into()),
        });
        call
    }

    /// A client heard its last word, or nothing.
    pub(super) fn answered(&self, call: Call, answer: ObservedAnswer) {
        self.lock().push(HistoryEvent::Answered { call, answer });
    }

    /// The effect happened, and answers with the receipt that `receipt` makes of its number.
    pub(super) fn effect(&self, ran: RecordedRun, receipt: impl FnOnce(u64) -> Outcome) -> Outcome {
        let at = self.elapsed();
        let mut events = self.lock();
        let outcome = receipt(number(events.len()));
        events.push(HistoryEvent::Effect(ran.with(&outcome, at)));
        outcome
    }

    /// The request was refused for good, without an effect.
    pub(super) fn declined(&self, ran: RecordedRun, outcome: &Outcome) {
        let at = self.elapsed();
        self.lock().push(HistoryEvent::Declined(ran.with(outcome, at)));
    }

    /// The key counts as new from here on.
    pub(super) fn expired(&self, key: usize) {
        self.lock().push(HistoryEvent::Expired { key: key_number(key) });
    }

    /// All is quiet, and this is what is stored.
    pub(super) fn quiesced(&self, key: usize, end: FinalState) {
        self.lock().push(HistoryEvent::Quiesced { key: key_number(key), end });
    }

    /// Everything so far.
    pub(super) fn history(&self) -> Vec<HistoryEvent> {
        self.lock().clone()
    }

    /// The same for the same history.
    pub(super) fn trace(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(format!("{:?}", self.lock()).as_bytes());
        hasher.finish()
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HistoryEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What ran: the key, the request, the fence it came with.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedRun {
    pub(super) key: usize,
    pub(super) request: u8,
    pub(super) fence: Fence,
}

impl RecordedRun {
    fn with(self, outcome: &Outcome, at: u64) -> LedgerRun {
        LedgerRun {
            key: key_number(self.key),
            fence: self.fence.get(),
            request: Request(self.request.into()),
            outcome: digest(outcome),
            at,
        }
    }
}

/// What tells outcomes apart.
pub(super) fn digest(outcome: &Outcome) -> Digest {
    let mut hasher = DefaultHasher::new();
    hasher.write_u16(outcome.status());
    if let Body::Kept(bytes) = outcome.body() {
        hasher.write(bytes);
    }
    Digest(hasher.finish())
}

fn key_number(key: usize) -> Key {
    Key(number(key))
}

fn number(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
