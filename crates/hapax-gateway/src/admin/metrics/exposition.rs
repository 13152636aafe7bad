//! The Prometheus text format, version 0.0.4, as far as it is needed here.

use std::fmt::{self, Write};

use super::family::{MetricFamily, MetricKind, MetricSample, SampleValue};

/// What `/metrics` is sent as.
pub(in crate::admin) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics under construction: one family after the other, each said once.
#[derive(Debug, Default)]
pub(in crate::admin) struct Exposition {
    families: Vec<MetricFamily>,
}

impl Exposition {
    /// Values that only grow. The name must end in `_total`.
    pub(in crate::admin) fn counter(&mut self, name: &str, help: &str) -> &mut MetricFamily {
        self.family(name, MetricKind::Counter, help)
    }

    /// Values that come and go.
    pub(in crate::admin) fn gauge(&mut self, name: &str, help: &str) -> &mut MetricFamily {
        self.family(name, MetricKind::Gauge, help)
    }

    /// Values by size.
    pub(super) fn histogram(&mut self, name: &str, help: &str) -> &mut MetricFamily {
        self.family(name, MetricKind::Histogram, help)
    }

    pub(super) fn into_families(self) -> Vec<MetricFamily> {
        self.families
    }

    fn family(&mut self, name: &str, kind: MetricKind, help: &str) -> &mut MetricFamily {
        let (name, help) = (name.to_owned(), help.to_owned());
        self.families.push_mut(MetricFamily { name, help, kind, samples: Vec::new() })
    }
}

/// The page that shows these.
pub(in crate::admin) fn text(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    for MetricFamily { name, help, kind, samples } in families {
        let help = Escaped { text: help, quote: false };
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        put(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        samples.iter().for_each(|sample| write_sample(&mut text, name, sample));
    }
    text
}

fn write_sample(text: &mut String, name: &str, MetricSample { labels, value }: &MetricSample) {
    let mut line = |suffix: &str, le: Option<&str>, value: &dyn fmt::Display| {
        put(text, format_args!("{name}{suffix}"));
        let own = labels.iter().map(|(label, text)| (label.as_str(), text.as_str()));
        let mut opening = '{';
        for (label, value) in own.chain(le.map(|bound| ("le", bound))) {
            let value = Escaped { text: value, quote: true };
            put(text, format_args!("{opening}{label}=\"{value}\""));
            opening = ',';
        }
        let closing = if opening == ',' { "}" } else { "" };
        put(text, format_args!("{closing} {value}\n"));
    };
    match value {
        SampleValue::Whole(value) => line("", None, value),
        SampleValue::Real(value) => line("", None, value),
        SampleValue::Spread { bounds, counts, sum } => {
            let mut at_most = 0;
            for (bound, count) in bounds.iter().zip(counts) {
                at_most += count;
                line("_bucket", Some(&bound.to_string()), &at_most);
            }
            let all: u64 = counts.iter().sum();
            line("_bucket", Some("+Inf"), &all);
            line("_sum", None, sum);
            line("_count", None, &all);
        }
    }
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
        page.counter("a_total", "one\\two\n\"three\"").sample(&[("route", "a\\\"\n")], 7_u64);
        assert_eq!(
            text(&page.into_families()),
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
        let text = text(&page.into_families());
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
