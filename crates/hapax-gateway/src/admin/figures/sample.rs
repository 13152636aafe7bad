//! Counts of one moment, and what happened between two of them.

use std::collections::BTreeMap;

use hapax_core::StateTag;
use hapax_engine::{Distribution, Engine, Stats};
use hapax_tower::Verdict;
use tokio::time::Instant;

use super::documents::{SampleDocument, SpreadDocument};
use crate::admin::metrics::{COLUMNS, MeterTotals, Meters, WORDS, column};

/// What was counted up to one moment.
#[derive(Debug)]
pub(super) struct CountedRequests {
    at: Instant,
    verdicts: [u64; COLUMNS],
    durations: [Distribution; COLUMNS],
    upstream: Distribution,
    commit: Distribution,
    in_flight: u64,
    in_doubt: Option<u64>,
    stats: Stats,
}

impl CountedRequests {
    pub(super) fn now(engine: &Engine, meters: &Meters) -> Self {
        let totals = meters.totals();
        Self {
            at: Instant::now(),
            verdicts: all_routes(&totals),
            in_flight: totals.in_flight.here(),
            in_doubt: meters.doubts().map(|doubts| doubts.keys()),
            durations: totals.durations,
            upstream: totals.exchange_durations,
            commit: engine.spreads().commit_micros,
            stats: engine.stats(),
        }
    }

    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// What happened since `before`, told at this time of day.
    pub(super) fn since(&self, before: &Self, at: String) -> SampleDocument {
        let verdicts = std::array::from_fn(|column| {
            self.verdicts[column].saturating_sub(before.verdicts[column])
        });
        let took = |verdict| {
            let column = column(verdict);
            spread(&self.durations[column], &before.durations[column])
        };
        SampleDocument {
            at,
            seconds: self.at.saturating_duration_since(before.at).as_secs_f64(),
            verdicts: by_word(&verdicts),
            entered: entered(&self.stats, &before.stats),
            in_flight: self.in_flight,
            in_doubt: self.in_doubt,
            executed: took(Verdict::Executed),
            replayed: took(Verdict::Replayed),
            upstream: spread(&self.upstream, &before.upstream),
            commit: spread(&self.commit, &before.commit),
        }
    }
}

/// Keys by the state they entered between two moments, as far as this process had them do so.
fn entered(now: &Stats, before: &Stats) -> BTreeMap<String, u64> {
    let states = |stats: &Stats| {
        [
            (StateTag::Running, stats.executions + stats.takeovers + stats.swept_taken_over),
            (StateTag::Completed, stats.ended_completed),
            (StateTag::Failed, stats.ended_failed),
            (StateTag::Released, stats.ended_released + stats.swept_released),
            (StateTag::InDoubt, stats.left_in_doubt),
        ]
    };
    let since = states(now).into_iter().zip(states(before));
    let counts = since.map(|((tag, now), (_, then))| (tag, now.saturating_sub(then)));
    let there = counts.filter(|(_, count)| *count > 0);
    there.map(|(tag, count)| (tag.as_str().to_owned(), count)).collect()
}

/// Requests over all routes, by verdict.
pub(super) fn all_routes(totals: &MeterTotals) -> [u64; COLUMNS] {
    let mut sums = [0; COLUMNS];
    for row in totals.requests.values() {
        sums.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
    }
    sums
}

/// Counts that are not zero, by the word of their verdict.
pub(super) fn by_word(counts: &[u64; COLUMNS]) -> BTreeMap<String, u64> {
    let counted = WORDS.iter().zip(counts).filter(|(_, count)| **count > 0);
    counted.map(|(word, count)| ((*word).to_owned(), *count)).collect()
}

/// How what was counted between two moments is spread; nothing if nothing was.
fn spread(now: &Distribution, before: &Distribution) -> Option<SpreadDocument> {
    let counts = now.counts.iter().zip(&before.counts);
    let counts: Vec<u64> = counts.map(|(now, before)| now.saturating_sub(*before)).collect();
    let count = counts.iter().sum();
    let quantile = |share| quantile(&counts, now.bounds, share) / 1000.0;
    (count > 0).then(|| SpreadDocument { count, p50_ms: quantile(0.5), p99_ms: quantile(0.99) })
}

/// The value that a share of all values does not exceed, as if values were spread evenly within
/// their bucket. What is beyond the last bound is taken for that bound.
#[expect(clippy::cast_precision_loss, reason = "an estimate, of counts far below 2^52")]
fn quantile(counts: &[u64], bounds: &[u64], share: f64) -> f64 {
    let wanted = counts.iter().sum::<u64>() as f64 * share;
    let (mut below, mut lower) = (0.0, 0);
    for (count, bound) in counts.iter().zip(bounds) {
        let count = *count as f64;
        if count > 0.0 && below + count >= wanted {
            return lower as f64 + (bound - lower) as f64 * ((wanted - below) / count);
        }
        below += count;
        lower = *bound;
    }
    lower as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_in_the_bucket_that_holds_it() {
        for (counts, share, expected) in [
            (&[10, 0, 0][..], 0.5, 50.0),
            (&[1, 1, 0], 0.5, 100.0),
            (&[0, 4, 0], 0.5, 150.0),
            (&[50, 49, 1], 0.99, 200.0),
        ] {
            assert_eq!(quantile(counts, &[100, 200], share), expected, "{counts:?} {share}");
        }
    }

    #[test]
    fn what_took_longer_than_every_bound_is_not_told_as_less() {
        assert_eq!(quantile(&[0, 0, 1], &[100, 200], 0.5), 200.0);
    }
}
