//! Metrics as data: what the page of them is written from, and what others push.

use hapax_engine::Distribution;

/// One metric with all its samples, as a process has it at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricFamily {
    /// Its name, the same wherever it is shown.
    pub name: String,
    /// What it counts.
    pub help: String,
    /// How its values behave.
    pub kind: MetricKind,
    /// Its values, one for each set of labels.
    pub samples: Vec<MetricSample>,
}

/// How the values of a metric behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// They only grow, from zero at the start of the process.
    Counter,
    /// They come and go.
    Gauge,
    /// They are counted by size.
    Histogram,
}

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSample {
    /// What tells it from others, in the order it is written.
    pub labels: Vec<(String, String)>,
    /// What it is.
    pub value: SampleValue,
}

/// The value of a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleValue {
    /// A whole number.
    Whole(u64),
    /// Any number.
    Real(f64),
    /// Numbers by size.
    Spread {
        /// The largest value of each bucket but the last, which has no bound.
        bounds: Vec<f64>,
        /// How many values fell into each bucket.
        counts: Vec<u64>,
        /// All values together.
        sum: f64,
    },
}

/// Labels of a sample, in the order they are written.
pub(in crate::admin) type Labels<'a> = &'a [(&'a str, &'a str)];

impl MetricFamily {
    /// One value.
    pub(in crate::admin) fn sample(&mut self, labels: Labels<'_>, value: impl Into<SampleValue>) {
        let labels = labels.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        self.samples.push(MetricSample { labels: labels.collect(), value: value.into() });
    }

    /// One distribution. `unit` is how many of its whole numbers make one of the metric's unit.
    pub(super) fn spread(&mut self, labels: Labels<'_>, spread: &Distribution, unit: f64) {
        let value = SampleValue::Spread {
            bounds: spread.bounds.iter().map(|bound| scaled(*bound, unit)).collect(),
            counts: spread.counts.clone(),
            sum: scaled(spread.sum, unit),
        };
        self.sample(labels, value);
    }
}

impl From<u64> for SampleValue {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for SampleValue {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum beyond 2^53 microseconds is 285 years")]
fn scaled(value: u64, unit: f64) -> f64 {
    value as f64 / unit
}
