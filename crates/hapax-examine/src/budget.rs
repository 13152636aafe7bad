//! How many effects an examination may have.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::Interruption;

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
    pub fn spend(&self, operations: u32) -> Result<(), Interruption> {
        let more = |spent: u32| spent.checked_add(operations).filter(|sum| *sum <= self.allowed);
        match self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(Interruption::BudgetSpent { allowed: self.allowed }),
        }
    }

    /// How many were begun.
    pub fn spent(&self) -> u32 {
        self.spent.load(Ordering::Relaxed)
    }
}
