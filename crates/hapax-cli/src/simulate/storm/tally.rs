//! What is counted, in slots of simulated time.

use std::time::Duration;

/// Everything that is known after a simulation.
pub(super) struct StormTally {
    slot: Duration,
    slots: Vec<TallySlot>,
    /// Calls that reached the dependency although nobody waited for them any more.
    pub(super) late: u64,
    /// Calls that the dependency refused.
    pub(super) refused: u64,
    /// When the last request was answered.
    pub(super) last_answer: Duration,
}

/// What happened within one slot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TallySlot {
    /// Requests that began in it.
    pub(super) requests: u32,
    /// Those of them that were answered well, whenever that was.
    pub(super) well: u32,
    /// Calls that reached the dependency in it.
    pub(super) calls: u32,
}

impl StormTally {
    pub(super) fn new(slot: Duration) -> Self {
        Self { slot, slots: Vec::new(), late: 0, refused: 0, last_answer: Duration::ZERO }
    }

    pub(super) fn at(&mut self, time: Duration) -> &mut TallySlot {
        let at = usize::try_from(time.as_nanos() / self.slot.as_nanos()).unwrap_or(usize::MAX);
        if self.slots.len() <= at {
            self.slots.resize(at + 1, TallySlot::default());
        }
        &mut self.slots[at]
    }

    pub(super) fn slots(&self) -> &[TallySlot] {
        &self.slots
    }

    pub(super) fn calls(&self) -> u64 {
        self.slots.iter().map(|slot| u64::from(slot.calls)).sum()
    }

    pub(super) fn requests(&self) -> u64 {
        self.slots.iter().map(|slot| u64::from(slot.requests)).sum()
    }

    pub(super) fn failed(&self) -> u64 {
        self.slots.iter().map(|slot| u64::from(slot.requests - slot.well)).sum()
    }

    /// The most calls in one slot.
    pub(super) fn peak(&self) -> u32 {
        self.slots.iter().map(|slot| slot.calls).max().unwrap_or(0)
    }

    /// How many calls the dependency was sent for each request.
    pub(super) fn amplification(&self) -> f64 {
        self.calls() as f64 / self.requests() as f64
    }
}
