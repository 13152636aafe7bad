//! What a probe has found so far.

use crate::{Defect, ProbeVerdict};

/// Said where the first request of a probe had no success.
pub(crate) const NO_SUCCESS: &str = "an ordinary request had no success, so there was nothing to repeat: examine an API that is at rest";

/// Trials, what was wrong in them, and what could not be told.
#[derive(Debug, Default)]
pub(crate) struct ProbeFindings {
    trials: u32,
    defects: Vec<Defect>,
    unclear: Vec<String>,
}

impl ProbeFindings {
    /// What it asks about came about and was seen; this is wrong, if anything is.
    pub(crate) fn seen(&mut self, defects: impl IntoIterator<Item = Defect>) {
        self.trials += 1;
        for defect in defects {
            // Said once, however often it is seen.
            if !self.defects.iter().any(|known| known.sentence == defect.sentence) {
                self.defects.push(defect);
            }
        }
    }

    /// It did not come about, or could not be told: why, and what would help.
    pub(crate) fn unclear(&mut self, reason: impl Into<String>) {
        self.unclear.push(reason.into());
    }

    /// Whether something is wrong.
    pub(crate) fn has_defects(&self) -> bool {
        !self.defects.is_empty()
    }

    /// Wrong if anything is; else unclear if anything was.
    pub(crate) fn verdict(mut self) -> ProbeVerdict {
        self.unclear.dedup();
        if self.defects.is_empty() && (self.trials == 0 || !self.unclear.is_empty()) {
            return ProbeVerdict::inconclusive(self.unclear.join("; "));
        }
        ProbeVerdict::of(self.trials, self.defects)
    }
}
