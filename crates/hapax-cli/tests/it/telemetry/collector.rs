//! A collector, and what it was told.

use std::sync::LazyLock;

use hapax_services::{ServiceError, collector::CollectorServer};
use serde_json::Value;

use crate::world::until;

/// A collector of its own. The first to ask has it built, before anybody waits for anything.
pub(super) async fn start() -> CollectorServer {
    static BUILT: LazyLock<Result<(), ServiceError>> =
        LazyLock::new(|| CollectorServer::start().map(drop));
    let started = tokio::task::spawn_blocking(|| {
        LazyLock::force(&BUILT).as_ref().unwrap();
        CollectorServer::start()
    });
    started.await.unwrap().unwrap()
}

/// A span as the collector has it.
#[derive(Debug, Clone)]
pub(super) struct Span(pub(super) Value);

impl Span {
    pub(super) fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    /// The value of an attribute, as text.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let attributes = self.0["attributes"].as_array()?;
        let found = attributes.iter().find(|attribute| attribute["key"] == name)?;
        let value = &found["value"];
        let text = value["stringValue"].as_str().or_else(|| value["intValue"].as_str());
        text.map(str::to_owned)
    }

    /// Whether it is of this kind, as OTLP numbers them: 2 a server's, 3 a client's, 5 a consumer's.
    pub(super) fn is_kind(&self, kind: u64) -> bool {
        self.0["kind"] == kind
    }
}

/// The parts of all messages at this path, such as `["resourceSpans", "scopeSpans", "spans"]`.
fn parts(told: &str, path: [&str; 3]) -> Vec<Value> {
    let mut found: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for name in path {
        let below = found.iter().filter_map(|part| part[name].as_array());
        found = below.flatten().cloned().collect();
    }
    found
}

/// Every span it was told of.
pub(super) fn spans(collector: &CollectorServer) -> Vec<Span> {
    let spans = parts(&collector.told(), ["resourceSpans", "scopeSpans", "spans"]);
    spans.into_iter().map(Span).collect()
}

/// Every metric it was told of, the latest last.
pub(super) fn metrics(collector: &CollectorServer) -> Vec<Value> {
    parts(&collector.told(), ["resourceMetrics", "scopeMetrics", "metrics"])
}

/// Waits for so many spans that fit.
pub(super) async fn wait_for(
    collector: &CollectorServer,
    count: usize,
    fits: impl Fn(&Span) -> bool,
) -> Vec<Span> {
    let fitting = || spans(collector).into_iter().filter(&fits).collect::<Vec<_>>();
    until("the collector to be told", async || fitting().len() >= count).await;
    fitting()
}
