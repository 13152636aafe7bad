//! The outbox in memory passes the suite for all of them.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use hapax_core::{
    Timestamp,
    outbox::{Event, memory},
};
use hapax_verify::conformance::outbox::OutboxBackend;

hapax_verify::outbox_conformance!(Memory);

/// Events in memory, under a clock that moves by a microsecond at every look and as tests step it.
struct Memory {
    clock: Arc<AtomicI64>,
    outbox: memory::Outbox,
}

impl OutboxBackend for Memory {
    type Outbox = memory::Outbox;

    async fn create() -> Self {
        let clock = Arc::new(AtomicI64::new(1_767_225_600_000_000));
        let hand = Arc::clone(&clock);
        let now = move || Timestamp::from_micros(hand.fetch_add(1, Ordering::SeqCst));
        Self { clock, outbox: memory::Outbox::new(now) }
    }

    async fn open(&self) -> memory::Outbox {
        self.outbox.clone()
    }

    async fn emit(&self, events: Vec<Event>) {
        self.outbox.emit(&events);
    }

    async fn roll_back(&self, _: Vec<Event>) {}

    async fn step_clock(&self, micros: i64) {
        self.clock.fetch_add(micros, Ordering::SeqCst);
    }

    async fn turn_over(&self) {}
}
