//! How many effects an examination may have, and how many it needs.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Examination, Probe, ProbeInterruption, controls};

/// Counts operations that were begun, and refuses more than were agreed to.
#[derive(Debug)]
pub struct EffectBudget {
    allowed: u32,
    spent: AtomicU32,
}

impl EffectBudget {
    /// So many operations may be begun.
    pub fn new(allowed: u32) -> Self {
        Self { allowed, spent: AtomicU32::new(0) }
    }

    /// One more, or so many at once.
    pub fn spend(&self, operations: u32) -> Result<(), ProbeInterruption> {
        let more = |spent: u32| spent.checked_add(operations).filter(|sum| *sum <= self.allowed);
        match self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(ProbeInterruption::BudgetSpent { allowed: self.allowed }),
        }
    }

    /// How many were begun.
    pub fn spent(&self) -> u32 {
        self.spent.load(Ordering::Relaxed)
    }
}

impl Examination {
    /// How many operations the controls and the chosen probes begin at most, known before the first is begun.
    ///
    /// Probes that lack something are not counted: they begin none.
    pub fn operations_max(&self) -> u32 {
        let run = self.chosen().filter(|probe| self.missing_for(probe).is_none());
        let of_probes = run.map(|probe| self.operations_max_of(probe));
        of_probes.fold(controls::OPERATIONS_MAX, u32::saturating_add)
    }

    /// How many operations this probe begins at most.
    pub fn operations_max_of(&self, probe: &Probe) -> u32 {
        let bounds = &self.bounds;
        match probe.id {
            // Each trial of a race is one operation, whoever comes for it.
            "V02" | "V03" | "V04" => {
                let sizes = u32::try_from(bounds.racers.len()).unwrap_or(u32::MAX);
                sizes.saturating_mul(bounds.race_trials)
            }
            // The one that is asked for again, which may have to be begun three times, and those between.
            "V22" => bounds.keys_between.saturating_add(3),
            _ => probe.operations_max,
        }
    }
}
