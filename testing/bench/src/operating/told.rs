//! What a collector heard, counted.

use serde_json::Value;

use crate::load::float;

/// The kind of a span that is about a request of a client, as OTLP numbers it.
const SERVER: u64 = 2;

/// How much a collector was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ToldCounts {
    /// Requests of clients that were traced.
    pub(super) requests: u64,
    /// Pushes of metrics.
    pub(super) metrics: u64,
}

impl ToldCounts {
    /// From OTLP in JSON, a message on each line.
    pub(super) fn read(told: &str) -> Self {
        let mut counts = Self::default();
        for message in told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            counts.metrics += u64::from(message.get("resourceMetrics").is_some());
            let scopes = each(&message, "resourceSpans").flat_map(|told| each(told, "scopeSpans"));
            let spans = scopes.flat_map(|scope| each(scope, "spans"));
            let servers = spans.filter(|span| span["kind"].as_u64() == Some(SERVER));
            counts.requests += u64::try_from(servers.count()).unwrap_or(u64::MAX);
        }
        counts
    }

    /// What was told after that.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            metrics: self.metrics.saturating_sub(before.metrics),
        }
    }

    /// What is wrong if so many requests were made, and this part of them was to be traced by chance.
    pub(super) fn wrong(self, requests: u64, sampled: f64) -> Option<String> {
        let expected = float(requests) * sampled;
        // Chance goes so far once in millions of measurements.
        let strays = (float(self.requests) - expected).abs() > 6.0 * expected.sqrt() + 3.0;
        (strays || self.metrics == 0).then(|| {
            let Self { requests: traced, metrics } = self;
            format!(
                "{requests} requests were made, of which about {expected:.0} were to be traced, but \
                 the collector was told of {traced}, and {metrics} times of metrics"
            )
        })
    }

    /// What is wrong if nobody was to be told.
    pub(super) fn wrong_of_none(self) -> Option<String> {
        let told = self.requests + self.metrics;
        (told > 0).then(|| "the collector was told something by a gateway without one".to_owned())
    }
}

fn each<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":2},{"kind":3}]},{"spans":[{"kind":2}]}]}]}
{"resourceMetrics":[{}]}
{"resourceSpans":[]}"#;

    #[test]
    fn traced_requests_and_pushes_of_metrics_are_counted() {
        let told = ToldCounts::read(TOLD);
        assert_eq!(told, ToldCounts { requests: 2, metrics: 1 });
        assert_eq!(told.since(told), ToldCounts::default());
        assert_eq!(ToldCounts::read(""), ToldCounts::default());
    }

    #[test]
    fn more_or_fewer_traces_than_by_chance_and_no_metrics_are_told() {
        let told = |requests, metrics| ToldCounts { requests, metrics };
        for (counts, is_wrong) in [
            (told(100, 1), false),
            (told(130, 1), false),
            (told(0, 1), true),
            (told(10_000, 1), true),
            (told(100, 0), true),
        ] {
            assert_eq!(counts.wrong(10_000, 0.01).is_some(), is_wrong, "{counts:?}");
        }
        assert_eq!(told(0, 1).wrong(100, 0.01), None);
        assert!(told(0, 1).wrong_of_none().is_some());
        assert_eq!(told(0, 0).wrong_of_none(), None);
    }
}
