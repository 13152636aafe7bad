//! The Prometheus text format, version 0.0.4, as far as it is needed here.

use std::fmt::{self, Write};

use hapax_engine::Distribution;

/// What `/metrics` is sent as.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metrics under construction: one family after the other, each said once.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

/// Labels of a sample, in the order they are written.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// Values that only grow. The name must end in `_total`.
    pub(super) fn counter<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, "counter", help)
    }

    /// Values that come and go.
    pub(super) fn gauge<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, "gauge", help)
    }

    /// Values by size.
    pub(super) fn histogram<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, "histogram", help)
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn family<'a>(&'a mut self, name: &'a str, kind: &str, help: &str) -> Family<'a> {
        let help = Escaped { text: help, quote: false };
        put(&mut self.text, format_args!("# HELP {name} {help}\n"));
        put(&mut self.text, format_args!("# TYPE {name} {kind}\n"));
        Family { text: &mut self.text, name }
    }
}

/// The samples of one metric.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Family<'_> {
    /// One value.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: impl fmt::Display) {
        self.line("", labels, None, value);
    }

    /// One distribution. `unit` is how many of its whole numbers make one of the metric's unit.
    pub(super) fn spread(&mut self, labels: Labels<'_>, spread: &Distribution, unit: f64) {
        let mut at_most = 0;
        for (bound, count) in spread.bounds.iter().zip(&spread.counts) {
            at_most += count;
            let bound = scaled(*bound, unit).to_string();
            self.line("_bucket", labels, Some(&bound), at_most);
        }
        self.line("_bucket", labels, Some("+Inf"), spread.count());
        self.line("_sum", labels, None, scaled(spread.sum, unit));
        self.line("_count", labels, None, spread.count());
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: Labels<'_>,
        le: Option<&str>,
        value: impl fmt::Display,
    ) {
        put(self.text, format_args!("{}{suffix}", self.name));
        let all = labels.iter().copied().chain(le.map(|bound| ("le", bound)));
        let mut opening = '{';
        for (label, text) in all {
            let text = Escaped { text, quote: true };
            put(self.text, format_args!("{opening}{label}=\"{text}\""));
            opening = ',';
        }
        let closing = if opening == ',' { "}" } else { "" };
        put(self.text, format_args!("{closing} {value}\n"));
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum beyond 2^53 microseconds is 285 years")]
fn scaled(value: u64, unit: f64) -> f64 {
    value as f64 / unit
}

/// Text as help lines and label values want it.
struct Escaped<'a> {
    text: &'a str,
    quote: bool,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.chars().try_for_each(|char| match char {
            '\\' => f.write_str("\\\\"),
            '\n' => f.write_str("\\n"),
            '"' if self.quote => f.write_str("\\\""),
            char => f.write_char(char),
        })
    }
}

fn put(text: &mut String, what: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(what);
}

#[cfg(test)]
mod tests {
    use hapax_engine::Histogram;

    use super::*;

    #[test]
    fn labels_and_help_are_escaped() {
        let mut page = Exposition::default();
        page.counter("a_total", "one\\two\n\"three\"").sample(&[("route", "a\\\"\n")], 7);
        assert_eq!(
            page.into_text(),
            "# HELP a_total one\\\\two\\n\"three\"\n# TYPE a_total counter\n\
             a_total{route=\"a\\\\\\\"\\n\"} 7\n"
        );
    }

    #[test]
    fn a_distribution_is_written_cumulatively_in_the_metrics_unit() {
        let histogram = Histogram::new(&[100, 1_000_000]);
        for micros in [50, 100, 2_500, 3_000_000] {
            histogram.observe(micros);
        }
        let mut page = Exposition::default();
        page.histogram("b_seconds", "b").spread(&[("v", "x")], &histogram.snapshot(), 1e6);
        let text = page.into_text();
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "b_seconds_bucket{v=\"x\",le=\"0.0001\"} 2",
                "b_seconds_bucket{v=\"x\",le=\"1\"} 3",
                "b_seconds_bucket{v=\"x\",le=\"+Inf\"} 4",
                "b_seconds_sum{v=\"x\"} 3.00265",
                "b_seconds_count{v=\"x\"} 4",
            ]
        );
    }
}
