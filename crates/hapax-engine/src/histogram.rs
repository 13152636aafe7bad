//! How values are spread, counted without locks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts values by size, from any thread. Values and bounds are whole numbers of one unit.
///
/// ```
/// use hapax_engine::Histogram;
///
/// let millis = Histogram::new(&[10, 100]);
/// millis.observe(7);
/// millis.observe(5_000);
/// assert_eq!(millis.snapshot().counts, [1, 0, 1]);
/// ```
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// An empty histogram whose buckets end at these bounds, which must grow; what is beyond the
    /// last has a bucket of its own.
    pub fn new(bounds: &'static [u64]) -> Self {
        assert!(bounds.is_sorted_by(|a, b| a < b), "bounds grow");
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Counts a value in the bucket with the smallest bound that is not below it.
    pub fn observe(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> Distribution {
        Distribution {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(),
            sum: self.sum.load(Relaxed),
        }
    }
}

/// What a [`Histogram`] had counted at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// The largest value of each bucket but the last.
    pub bounds: &'static [u64],
    /// How many values fell into each bucket; the last has no bound.
    pub counts: Vec<u64>,
    /// All values together.
    pub sum: u64,
}

impl Distribution {
    /// Adds what another histogram with the same bounds has counted.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.bounds, other.bounds, "only like is added to like");
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_where_the_smallest_bound_is_not_below_it() {
        let histogram = Histogram::new(&[1, 10, 100]);
        for value in [0, 1, 2, 10, 11, 100, 101, 5000] {
            histogram.observe(value);
        }
        let spread = histogram.snapshot();
        assert_eq!(spread.counts, [2, 2, 2, 2]);
        assert_eq!((spread.count(), spread.sum), (8, 5225));
    }

    #[test]
    fn what_two_histograms_counted_adds_up() {
        let (a, b) = (Histogram::new(&[5]), Histogram::new(&[5]));
        a.observe(3);
        b.observe(4);
        b.observe(6);
        let mut both = a.snapshot();
        both.add(&b.snapshot());
        assert_eq!(both, Distribution { bounds: &[5], counts: vec![2, 1], sum: 13 });
    }
}
