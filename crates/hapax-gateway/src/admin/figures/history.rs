//! The last hour.

use std::{collections::VecDeque, time::Duration};

use hapax_engine::Stats;

use super::documents::{DeedDocument, SampleDocument};

/// How long one sample is.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// How many samples are kept: an hour of them.
pub(super) const SAMPLES_MAX: usize = 360;
/// How many deeds of housekeeping are kept.
const DEEDS_MAX: usize = 200;

/// What the sweeper and the purger count.
pub(super) const HOUSEKEEPING: [&str; 8] = [
    "swept_released",
    "swept_in_doubt",
    "swept_taken_over",
    "sweeps_skipped",
    "left_in_doubt",
    "purged",
    "buried",
    "timed_out",
];

/// What happened lately, bounded.
#[derive(Debug, Default)]
pub(in crate::admin) struct FigureHistory {
    samples: VecDeque<SampleDocument>,
    deeds: VecDeque<DeedDocument>,
    housekeeping: Stats,
}

impl FigureHistory {
    /// The oldest first.
    pub(super) fn samples(&self) -> impl Iterator<Item = &SampleDocument> {
        self.samples.iter()
    }

    pub(super) fn newest(&self) -> Option<&SampleDocument> {
        self.samples.back()
    }

    /// The newest first.
    pub(super) fn log(&self) -> impl Iterator<Item = &DeedDocument> {
        self.deeds.iter().rev()
    }

    pub(super) fn keep(&mut self, sample: SampleDocument) {
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Notes what housekeeping has done since it was last asked.
    pub(super) fn note(&mut self, at: &str, stats: Stats) {
        let before = self.housekeeping;
        for (now, then) in stats.named().zip(before.named()) {
            let count = now.count.saturating_sub(then.count);
            if count == 0 || !HOUSEKEEPING.contains(&now.name) {
                continue;
            }
            if self.deeds.len() >= DEEDS_MAX {
                self.deeds.pop_front();
            }
            let (name, what) = (now.name.to_owned(), now.help.to_owned());
            self.deeds.push_back(DeedDocument { at: at.to_owned(), name, what, count });
        }
        self.housekeeping = stats;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: usize) -> SampleDocument {
        SampleDocument {
            at: at.to_string(),
            seconds: 10.0,
            verdicts: std::collections::BTreeMap::new(),
            entered: std::collections::BTreeMap::new(),
            in_flight: 0,
            in_doubt: None,
            executed: None,
            replayed: None,
            upstream: None,
            commit: None,
        }
    }

    #[test]
    fn an_hour_is_kept_and_not_more() {
        let mut history = FigureHistory::default();
        (0..SAMPLES_MAX + 5).for_each(|at| history.keep(sample(at)));
        assert_eq!(history.samples().count(), SAMPLES_MAX);
        assert_eq!(history.samples().next().map(|sample| sample.at.as_str()), Some("5"));
    }
}
