//! Writes down what clients asked and heard, and what really happened.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::handler::Reply;

/// The history of one run. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Vec<Event>>>);

#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    Asked { key: usize, request: u8 },
    Answered { ask: usize, reply: Reply },
    GaveUp { ask: usize },
    Effect { key: usize, request: u8 },
}

impl Recorder {
    /// A client asks; the number names the ask.
    pub(super) fn asked(&self, key: usize, request: u8) -> usize {
        self.push(Event::Asked { key, request })
    }

    /// A client heard its final answer.
    pub(super) fn answered(&self, ask: usize, reply: Reply) {
        self.push(Event::Answered { ask, reply });
    }

    /// A client never heard a final answer.
    pub(super) fn gave_up(&self, ask: usize) {
        self.push(Event::GaveUp { ask });
    }

    /// The effect happened; the number names it.
    pub(super) fn effect(&self, key: usize, request: u8) -> u64 {
        let number = self.push(Event::Effect { key, request });
        u64::try_from(number).unwrap_or(u64::MAX)
    }

    /// Hands over everything so far; what follows is a history of its own.
    pub(super) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock())
    }

    fn push(&self, event: Event) -> usize {
        let mut events = self.lock();
        events.push(event);
        events.len() - 1
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
