//! Metrics that are pushed are those that are shown.

use std::collections::BTreeSet;

use serde_json::Value;

use super::collector;
use crate::{
    operating::Scrape,
    relay::Shop,
    world::{Behaviour, Setup, Upstream, ask, post, until},
};

/// The latest value of a counter or gauge with these labels.
fn pushed(metrics: &[Value], name: &str, labels: &[(&str, &str)]) -> Option<String> {
    let latest = metrics.iter().rev().find(|metric| metric["name"] == name)?;
    let points =
        ["sum", "gauge"].into_iter().find_map(|kind| latest[kind]["dataPoints"].as_array());
    let fits = |point: &&Value| {
        labels.iter().all(|(label, text)| {
            point["attributes"].as_array().is_some_and(|attributes| {
                attributes.iter().any(|attribute| {
                    attribute["key"] == *label && attribute["value"]["stringValue"] == *text
                })
            })
        })
    };
    let point = points?.iter().find(fits)?;
    let value = point["asInt"].as_str().map(str::to_owned);
    value.or_else(|| Some(point["asDouble"].to_string()))
}

#[tokio::test]
async fn what_is_pushed_has_the_names_and_the_values_of_the_page() {
    let (collector, upstream) =
        (collector::start().await, Upstream::start(Behaviour::default()).await);
    let config = format!(
        "[telemetry]\nendpoint = \"http://{}\"\nprotocol = \"grpc\"\nsample = 0.5\nservice = \"payments\"\n\
         metrics_every = \"200ms\"\n[[route]]\nmatch = \"POST /pay\"\n",
        collector.grpc()
    );
    let gateway = Setup::new(upstream.address).config(&config).start().await;
    for _ in 0..3 {
        ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    }
    let labels = [("route", "POST /pay"), ("verdict", "replayed")];
    until("the replays to be pushed", async || {
        let metrics = collector::metrics(&collector);
        pushed(&metrics, "hapax_requests_total", &labels).as_deref() == Some("2")
    })
    .await;
    let page = Scrape::of(&gateway).await;
    let metrics = collector::metrics(&collector);
    let names: BTreeSet<&str> =
        metrics.iter().filter_map(|metric| metric["name"].as_str()).collect();
    let shown: BTreeSet<&str> = page
        .samples()
        .map(|(series, _)| series.split('{').next().unwrap())
        .map(|name| {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            base.filter(|base| names.contains(base)).unwrap_or(name)
        })
        .collect();
    let missing: Vec<_> = shown.difference(&names).collect();
    assert!(missing.is_empty() && shown.len() > 30, "not pushed: {missing:?}");
    let durations = metrics.iter().rev().find(|m| m["name"] == "hapax_request_duration_seconds");
    let histogram = &durations.unwrap()["histogram"];
    assert_eq!(histogram["aggregationTemporality"], 2, "cumulative");
    let points = histogram["dataPoints"].as_array().unwrap();
    let counted: u64 =
        points.iter().filter_map(|point| point["count"].as_str()?.parse::<u64>().ok()).sum();
    assert_eq!(counted, 3, "{histogram}");
    assert!(
        collector.told().contains(r#"{"key":"service.name","value":{"stringValue":"payments"}}"#)
    );
}

#[tokio::test]
async fn a_relay_pushes_its_metrics_as_the_environment_says() {
    let (collector, shop) = (collector::start().await, Shop::new());
    shop.emit("orders", "1", 0..3);
    let endpoint = format!("http://{}", collector.grpc());
    let relay = shop.relay_with(
        &["--to", "stdout:", "--name", "tape"],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "200"),
            ("OTEL_SERVICE_NAME", "events"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment=test%20bench"),
        ],
    );
    until("the events to be told of", async || {
        let metrics = collector::metrics(&collector);
        pushed(&metrics, "hapax_outbox_sent_total", &[("destination", "tape")]).as_deref()
            == Some("3")
    })
    .await;
    let told = collector.told();
    assert!(told.contains(r#"{"key":"service.name","value":{"stringValue":"events"}}"#), "{told}");
    assert!(told.contains(r#"{"stringValue":"test bench"}"#), "{told}");
    drop(relay);
}

#[tokio::test]
async fn a_collector_is_sent_the_headers_of_a_file_below_the_path_of_its_endpoint() {
    let (collector, upstream) =
        (Upstream::start(Behaviour::default()).await, Upstream::start(Behaviour::default()).await);
    let config = format!(
        "[telemetry]\nendpoint = \"http://{}/otlp\"\nheaders_file = \"headers\"\nmetrics_every = \"100ms\"\n",
        collector.address
    );
    let setup = Setup::new(upstream.address).config(&config);
    let gateway = setup.file("headers", "x-api-key=hush\nx-team = payments\n").start().await;
    until("a push", async || !collector.heads().is_empty()).await;
    let head = collector.heads().remove(0);
    assert!(head.starts_with("POST /otlp/v1/metrics "), "{head}");
    for said in
        ["\"x-api-key\": \"hush\"", "\"x-team\": \"payments\"", "\"application/x-protobuf\""]
    {
        assert!(head.contains(said), "{said} is not in {head}");
    }
    assert!(!gateway.log().contains("hush"), "{}", gateway.log());
}
