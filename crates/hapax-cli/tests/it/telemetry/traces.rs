//! Spans, as a collector has them.

use std::time::Duration;

use super::{
    CALLER, TRACE,
    collector::{self, Span, wait_for},
    traced,
};
use crate::world::{Behaviour, Setup, Upstream, ask, free_address, post, until};

const ROUTE: &str = "[[route]]\nmatch = \"POST /pay\"\n";

/// The context that the last request to an upstream carried: trace, span and flags.
fn forwarded(head: &str) -> (String, String, String) {
    let (_, rest) = head.split_once("\"traceparent\": \"00-").unwrap();
    let mut parts = rest.split('"').next().unwrap().split('-').map(str::to_owned);
    (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap())
}

async fn paid(protocol: &str) {
    let (collector, upstream) =
        (collector::start().await, Upstream::start(Behaviour::default()).await);
    let endpoint = if protocol == "grpc" { collector.grpc() } else { collector.http() };
    let config = format!(
        "[telemetry]\nendpoint = \"http://{endpoint}\"\nprotocol = \"{protocol}\"\nsample = 0\n{ROUTE}"
    );
    let gateway = Setup::new(upstream.address).config(&config).start().await;
    for status in [201, 201] {
        let answer = ask(gateway.address, traced("/pay?secret=1", "k-1", "01")).await.unwrap();
        assert_eq!(answer.status, status);
    }
    // Nobody records these: neither the callers nor, at a ratio of nothing, the gateway.
    ask(gateway.address, traced("/pay", "k-2", "00")).await.unwrap();
    ask(gateway.address, post("/pay", "k-3", "ten")).await.unwrap();
    let spans = wait_for(&collector, 3, |_| true).await;
    let servers: Vec<&Span> = spans.iter().filter(|span| span.is_kind(2)).collect();
    let clients: Vec<&Span> = spans.iter().filter(|span| span.is_kind(3)).collect();
    assert_eq!((servers.len(), clients.len()), (2, 1), "{spans:#?}");
    for (server, verdict) in servers.iter().zip(["executed", "replayed"]) {
        assert_eq!((server.text("traceId"), server.text("parentSpanId")), (TRACE, CALLER));
        assert_eq!(server.text("traceState"), "shop=1,bank=2");
        assert_eq!(server.text("name"), "POST /pay");
        for (name, value) in [
            ("hapax.verdict", verdict),
            ("http.request.method", "POST"),
            ("http.route", "/pay"),
            ("http.response.status_code", "201"),
            ("url.path", "/pay"),
            ("url.scheme", "http"),
            ("client.address", "127.0.0.1"),
        ] {
            assert_eq!(server.attribute(name).as_deref(), Some(value), "{name} of {server:?}");
        }
    }
    let client = clients[0];
    assert_eq!(client.text("parentSpanId"), servers[0].text("spanId"));
    assert_eq!(client.attribute("hapax.fence").as_deref(), Some("1"));
    let ids: Vec<_> = spans.iter().map(|span| span.attribute("hapax.operation.id")).collect();
    assert!(ids[0].is_some() && ids.iter().all(|id| *id == ids[0]), "one operation: {ids:?}");
    let heads = upstream.heads();
    let (trace, span, flags) = forwarded(&heads[0]);
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "01"));
    assert_eq!(span, client.text("spanId"), "the upstream's parent is the sending");
    assert!(heads[0].contains("\"tracestate\": \"shop=1,bank=2\""), "{}", heads[0]);
    assert_eq!(forwarded(&heads[1]), (TRACE.to_owned(), CALLER.to_owned(), "00".to_owned()));
    assert_eq!(forwarded(&heads[2]).2, "00", "others are told that nobody records it");
    let told = collector.told();
    for secret in ["k-1", "k-2", "k-3", "secret", "alice"] {
        assert!(!told.contains(secret), "{secret} is told to nobody: {told}");
    }
}

#[tokio::test]
async fn a_request_and_its_replay_continue_the_callers_trace_over_http() {
    paid("http").await;
}

#[tokio::test]
async fn a_request_and_its_replay_continue_the_callers_trace_over_grpc() {
    paid("grpc").await;
}

#[tokio::test]
async fn what_is_run_later_is_linked_to_the_request_that_left_it() {
    let (collector, upstream) =
        (collector::start().await, Upstream::start(Behaviour::default()).await);
    let config = format!(
        "[telemetry]\nendpoint = \"http://{}\"\n{ROUTE}in_flight = \"accept\"\nkeep_credentials = true\n",
        collector.http()
    );
    let gateway = Setup::new(upstream.address).config(&config).start().await;
    let answer = ask(gateway.address, traced("/pay", "k", "01")).await.unwrap();
    assert_eq!(answer.status, 202, "{}", answer.text());
    let spans = wait_for(&collector, 3, |_| true).await;
    let one = |kind| spans.iter().find(|span| span.is_kind(kind)).unwrap();
    let (server, client, background) = (one(2), one(3), one(5));
    assert_eq!(server.attribute("hapax.verdict").as_deref(), Some("queued"));
    assert_ne!(background.text("traceId"), TRACE, "nobody waits for it");
    let link = &background.0["links"][0];
    assert_eq!(link["traceId"], TRACE);
    assert_eq!(link["spanId"].as_str(), Some(server.text("spanId")));
    assert_eq!(client.text("traceId"), background.text("traceId"));
    assert_eq!(client.text("parentSpanId"), background.text("spanId"));
    let id = server.attribute("hapax.operation.id");
    assert!(id.is_some());
    for span in [client, background] {
        assert_eq!(span.attribute("hapax.operation.id"), id);
    }
}

#[tokio::test]
async fn asking_whether_it_happened_and_sending_again_are_spans_of_the_same_request() {
    let takes = Duration::from_millis(700);
    let (collector, upstream) = (
        collector::start().await,
        Upstream::start(Behaviour { takes, ..Behaviour::default() }).await,
    );
    let config = format!(
        "[telemetry]\nendpoint = \"http://{}\"\n{ROUTE}timeout = \"300ms\"\nrecovery = \"probe\"\n\
         probe = \"/by-key/{{key}}\"\nupstream_works_for = \"1s\"\n",
        collector.http()
    );
    let gateway = Setup::new(upstream.address).config(&config).start().await;
    ask(gateway.address, traced("/pay", "k-secret", "01")).await.unwrap();
    let spans = wait_for(&collector, 3, |_| true).await;
    let server = spans.iter().find(|span| span.is_kind(2)).unwrap();
    let probe = spans.iter().find(|span| span.text("name") == "probe GET").unwrap();
    let sending = spans.iter().find(|span| span.text("name") == "POST").unwrap();
    assert_eq!(sending.attribute("error.type").as_deref(), Some("unanswered"));
    assert_eq!(sending.0["status"]["code"], 2, "{sending:?}");
    assert_eq!(probe.attribute("http.response.status_code").as_deref(), Some("201"));
    for span in [probe, sending] {
        assert_eq!(span.text("parentSpanId"), server.text("spanId"));
        assert_eq!(span.attribute("hapax.operation.id"), server.attribute("hapax.operation.id"));
    }
    assert!(!collector.told().contains("k-secret"), "the path of a probe holds the key");
}

#[tokio::test]
async fn a_collector_that_is_away_costs_a_warning_and_the_process_ends_well() {
    let (away, upstream) = (free_address(), Upstream::start(Behaviour::default()).await);
    let config = format!(
        "[telemetry]\nendpoint = \"http://{away}\"\ntimeout = \"1s\"\nmetrics_every = \"200ms\"\n{ROUTE}"
    );
    let mut gateway = Setup::new(upstream.address).config(&config).start().await;
    for number in 0..20 {
        let answer = ask(gateway.address, post("/pay", &format!("k-{number}"), "ten")).await;
        assert_eq!(answer.unwrap().status, 201);
    }
    until("it to be told", async || gateway.log().contains("does not take")).await;
    gateway.signal("TERM");
    assert!(gateway.ended().await, "it ends well: {}", gateway.log());
    let warnings = gateway.log().matches("does not take").count();
    assert_eq!(warnings, 1, "{}", gateway.log());
}

#[tokio::test]
async fn what_was_not_yet_sent_is_sent_when_the_gateway_ends() {
    let (collector, upstream) =
        (collector::start().await, Upstream::start(Behaviour::default()).await);
    let config = format!("[telemetry]\nendpoint = \"http://{}\"\n{ROUTE}", collector.http());
    let mut gateway = Setup::new(upstream.address).config(&config).start().await;
    ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    gateway.signal("TERM");
    assert!(gateway.ended().await);
    let spans = collector::spans(&collector);
    assert_eq!(spans.len(), 2, "{spans:#?}");
    assert!(!collector::metrics(&collector).is_empty(), "and the last counts");
}

#[tokio::test]
async fn a_context_that_cannot_be_read_is_replaced_and_what_belonged_to_it_is_not_passed_on() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config =
        format!("[telemetry]\nendpoint = \"http://{}\"\nsample = 0\n{ROUTE}", free_address());
    let gateway = Setup::new(upstream.address).config(&config).start().await;
    let broken = traced("/pay", "k-1", "01").replace(TRACE, &"0".repeat(32));
    let twice = traced("/pay", "k-2", "01");
    let twice = twice.replacen("\r\n\r\n", "\r\ntraceparent: again\r\n\r\n", 1);
    for request in [broken, twice] {
        assert_eq!(ask(gateway.address, request).await.unwrap().status, 201);
    }
    for head in upstream.heads() {
        let (trace, _, flags) = forwarded(&head);
        assert!(trace != TRACE && trace.trim_matches('0').len() > 1, "{head}");
        assert_eq!(flags, "00", "{head}");
        assert_eq!(head.matches("traceparent").count(), 1, "{head}");
        assert!(!head.contains("tracestate"), "{head}");
    }
}
