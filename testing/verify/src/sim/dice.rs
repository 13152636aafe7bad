//! The one source of chance in a run.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use fastrand::Rng;

use super::plan::SimPlan;

/// Decides every fault of a run, in the order the run asks. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Dice(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    plan: SimPlan,
    rng: Mutex<Rng>,
    faults: AtomicBool,
    injected: AtomicU64,
}

impl Dice {
    pub(super) fn new(plan: SimPlan) -> Self {
        let rng = Mutex::new(Rng::with_seed(plan.seed ^ 0x0068_6170_6178));
        let (faults, injected) = (AtomicBool::new(true), AtomicU64::new(0));
        Self(Arc::new(Shared { plan, rng, faults, injected }))
    }

    pub(super) fn plan(&self) -> &SimPlan {
        &self.0.plan
    }

    /// From now on nothing goes wrong.
    pub(super) fn heal(&self) {
        self.0.faults.store(false, Relaxed);
    }

    /// How many faults there were.
    pub(super) fn injected(&self) -> u64 {
        self.0.injected.load(Relaxed)
    }

    /// One of these faults, each with its chance per thousand, or none.
    pub(super) fn fault<T, const N: usize>(&self, kinds: [(u32, T); N]) -> Option<T> {
        if !self.0.faults.load(Relaxed) {
            return None;
        }
        let mut roll = self.with(|rng| rng.u32(..1000));
        for (chance, kind) in kinds {
            if roll < chance {
                self.0.injected.fetch_add(1, Relaxed);
                return Some(kind);
            }
            roll -= chance;
        }
        None
    }

    /// Whether something happens that has this chance per thousand.
    pub(super) fn happens(&self, chance: u32) -> bool {
        self.fault([(chance, ())]).is_some()
    }

    /// A span from nothing to `max`.
    pub(super) fn up_to(&self, max: Duration) -> Duration {
        let max = u64::try_from(max.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.with(|rng| rng.u64(..=max)))
    }

    /// A number below `end`.
    pub(super) fn below(&self, end: usize) -> usize {
        self.with(|rng| rng.usize(..end))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.0.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
