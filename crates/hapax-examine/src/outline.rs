//! What an examination would do, before it does anything.

use crate::{Examination, Probe, controls};

/// Which probes would be run, which not, and how many operations that begins at most.
#[derive(Debug, Clone)]
pub struct ExaminationOutline {
    /// What would be run.
    pub runs: Vec<OutlinedProbe>,
    /// What would not, and what it lacks.
    pub left_out: Vec<(&'static Probe, &'static str)>,
    /// How many operations the controls begin at most.
    pub control_operations_max: u32,
}

/// A probe that would be run.
#[derive(Debug, Clone, Copy)]
pub struct OutlinedProbe {
    /// Which.
    pub probe: &'static Probe,
    /// How many operations it begins at most.
    pub operations_max: u32,
}

impl Examination {
    /// What it would do.
    pub fn outline(&self) -> ExaminationOutline {
        let (mut runs, mut left_out) = (Vec::new(), Vec::new());
        for probe in self.chosen() {
            match self.missing_for(probe) {
                Some(missing) => left_out.push((probe, missing)),
                None => {
                    let operations_max = self.operations_max_of(probe);
                    runs.push(OutlinedProbe { probe, operations_max });
                }
            }
        }
        ExaminationOutline { runs, left_out, control_operations_max: controls::OPERATIONS_MAX }
    }
}

impl ExaminationOutline {
    /// How many operations all of it begins at most.
    pub fn operations_max(&self) -> u32 {
        let probes = self.runs.iter().map(|run| run.operations_max);
        probes.fold(self.control_operations_max, u32::saturating_add)
    }

    /// Which probes to leave out so that no more than so many operations are begun, the dearest first.
    pub fn to_leave_out(&self, allowed: u32) -> Vec<OutlinedProbe> {
        let mut dearest: Vec<_> = self.runs.clone();
        dearest.sort_by_key(|run| std::cmp::Reverse(run.operations_max));
        let mut operations = self.operations_max();
        let mut left = Vec::new();
        for run in dearest {
            if operations <= allowed {
                break;
            }
            operations = operations.saturating_sub(run.operations_max);
            left.push(run);
        }
        left
    }
}
