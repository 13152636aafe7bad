//! Calls of the last while, counted in slots that are forgotten one by one.

use std::time::Duration;

const SLOTS: usize = 10;

/// How many calls of a sliding window were good and bad.
#[derive(Debug)]
pub(super) struct SlidingWindow {
    slot_nanos: u64,
    /// The number of the newest slot since the start of time.
    newest: u64,
    slots: [Count; SLOTS],
}

/// Calls by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) good: u32,
    pub(super) bad: u32,
}

impl SlidingWindow {
    pub(super) fn new(span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self {
            slot_nanos: (nanos / SLOTS as u64).max(1),
            newest: 0,
            slots: [Count::default(); SLOTS],
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.slots = [Count::default(); SLOTS];
    }

    /// The slot of now, with what is too old forgotten. A clock that lags counts in the newest slot.
    pub(super) fn at(&mut self, now: Duration) -> &mut Count {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let slot = (nanos / self.slot_nanos).max(self.newest);
        let passed = (slot - self.newest).min(SLOTS as u64);
        for outdated in slot + 1 - passed..=slot {
            self.slots[place(outdated)] = Count::default();
        }
        self.newest = slot;
        &mut self.slots[place(slot)]
    }

    /// Everything in the window.
    pub(super) fn sum(&self) -> Count {
        self.slots.iter().fold(Count::default(), |sum, slot| Count {
            good: sum.good.saturating_add(slot.good),
            bad: sum.bad.saturating_add(slot.bad),
        })
    }
}

fn place(slot: u64) -> usize {
    usize::try_from(slot % SLOTS as u64).unwrap_or(0)
}
