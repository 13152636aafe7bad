use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use axum::http::{Method, StatusCode};
use hapax_engine::Admission;
use hapax_gateway::admin::UpstreamExchange;
use hapax_tower::{Code, Handled, Protection, Routes, Treatment, Verdict};
use serde_json::json;
use tokio::time::advance;

use super::world::{World, ask, id};

/// A page of metrics, taken apart and checked.
struct Scraped {
    kinds: BTreeMap<String, String>,
    samples: BTreeMap<String, f64>,
}

impl Scraped {
    async fn from(world: &World) -> Self {
        let answer = world.get("/metrics").await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        parse(&answer.text)
    }

    fn shows(&self, expected: &[(&str, f64)]) {
        for (series, value) in expected {
            let shown = self.samples.get(*series).unwrap_or_else(|| panic!("there is no {series}"));
            assert!((shown - value).abs() < 1e-9, "{series} is {shown}, not {value}");
        }
    }
}

/// Refuses a page that Prometheus would refuse: families said twice or without help, samples out
/// of their family or said twice, histograms that do not add up.
fn parse(text: &str) -> Scraped {
    let (mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let (mut helped, mut family) = (HashSet::new(), String::new());
    let mut below = (String::new(), 0.0);
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
            family = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family, "help comes right before the type");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap();
            let name = series.split('{').next().unwrap();
            let suffixes: &[&str] = match kinds[&family].as_str() {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            let is_ours = suffixes.iter().any(|suffix| name == format!("{family}{suffix}"));
            assert!(is_ours, "{line} belongs to {family}");
            if let Some((labels, _)) = series.split_once("le=\"") {
                assert!(below.0 != labels || below.1 <= value, "{line} is below {}", below.1);
                below = (labels.to_owned(), value);
            } else if name.ends_with("_count") {
                assert_eq!(below.1.to_bits(), value.to_bits(), "{line} is the last bucket");
            }
            assert!(samples.insert(series.to_owned(), value).is_none(), "{line} was said before");
        }
    }
    Scraped { kinds, samples }
}

fn labels(routes: &[&str]) -> Arc<[String]> {
    routes.iter().map(|route| (*route).to_owned()).collect()
}

fn handled(verdict: Verdict, route: usize) -> Handled {
    Handled { verdict, route, operation: None, repeated: None }
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn what_workers_count_is_summed_by_route_and_verdict() {
    let world = World::new();
    let labels = labels(&["POST /payments", "otherwise"]);
    for _ in 0..2 {
        let meter = world.meters.meter(&labels);
        meter.record(&handled(Verdict::Executed, 0), MILLISECOND);
        meter.record(&handled(Verdict::Replayed, 0), MILLISECOND / 10);
        meter.record(&handled(Verdict::Refused(Code::KeyMissing), 1), MILLISECOND);
        meter.record_unhandled(MILLISECOND);
    }
    Scraped::from(&world).await.shows(&[
        ("hapax_requests_total{route=\"POST /payments\",verdict=\"executed\"}", 2.0),
        ("hapax_requests_total{route=\"POST /payments\",verdict=\"replayed\"}", 2.0),
        ("hapax_requests_total{route=\"POST /payments\",verdict=\"passed\"}", 0.0),
        ("hapax_requests_total{route=\"otherwise\",verdict=\"refused\"}", 2.0),
        ("hapax_requests_total{route=\"otherwise\",verdict=\"unhandled\"}", 2.0),
        ("hapax_refusals_total{code=\"key-missing\"}", 2.0),
        ("hapax_request_duration_seconds_bucket{verdict=\"executed\",le=\"0.0005\"}", 0.0),
        ("hapax_request_duration_seconds_bucket{verdict=\"executed\",le=\"0.001\"}", 2.0),
        ("hapax_request_duration_seconds_bucket{verdict=\"replayed\",le=\"0.0001\"}", 2.0),
        ("hapax_request_duration_seconds_sum{verdict=\"executed\"}", 0.002),
    ]);
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_before_a_reload_stays_counted() {
    let world = World::new();
    let before = world.meters.meter(&labels(&["POST /old", "POST /kept", "otherwise"]));
    let connection = before.connection();
    before.record(&handled(Verdict::Executed, 0), MILLISECOND);
    before.record(&handled(Verdict::Executed, 1), MILLISECOND);
    drop(before);
    world.meters.record_reload();
    world.meters.record_refused_reload();
    let after = world.meters.meter(&labels(&["POST /kept", "otherwise"]));
    after.record(&handled(Verdict::Executed, 0), MILLISECOND);
    let counted = [
        ("hapax_requests_total{route=\"POST /old\",verdict=\"executed\"}", 1.0),
        ("hapax_requests_total{route=\"POST /kept\",verdict=\"executed\"}", 2.0),
        ("hapax_request_duration_seconds_count{verdict=\"executed\"}", 3.0),
        ("hapax_reloads_total{result=\"applied\"}", 1.0),
        ("hapax_reloads_total{result=\"refused\"}", 1.0),
        ("hapax_connections_total", 1.0),
    ];
    let page = Scraped::from(&world).await;
    page.shows(&counted);
    page.shows(&[("hapax_connections_open", 1.0)]);
    drop(connection);
    for _ in 0..2 {
        let page = Scraped::from(&world).await;
        page.shows(&counted);
        page.shows(&[("hapax_connections_open", 0.0)]);
    }
}

#[tokio::test(start_paused = true)]
async fn connections_and_requests_are_counted_while_they_last() {
    let world = World::new();
    let meter = world.meters.meter(&labels(&["otherwise"]));
    let (connection, request) = (meter.connection(), meter.request());
    meter.record_refused_connection();
    let page = Scraped::from(&world).await;
    page.shows(&[("hapax_connections_open", 1.0), ("hapax_requests_in_flight", 1.0)]);
    drop((connection, request));
    Scraped::from(&world).await.shows(&[
        ("hapax_connections_open", 0.0),
        ("hapax_requests_in_flight", 0.0),
        ("hapax_connections_total", 1.0),
        ("hapax_connections_refused_total", 1.0),
    ]);
}

#[tokio::test(start_paused = true)]
async fn exchanges_with_the_upstream_are_counted_by_result() {
    let world = World::new();
    let meter = world.meters.meter(&labels(&["otherwise"]));
    for status in [StatusCode::OK, StatusCode::CREATED, StatusCode::NOT_FOUND] {
        meter.record_exchange(UpstreamExchange::Answered(status), MILLISECOND);
    }
    meter.record_exchange(UpstreamExchange::NothingSent, MILLISECOND);
    meter.record_exchange(UpstreamExchange::Unanswered, 90_000 * MILLISECOND);
    Scraped::from(&world).await.shows(&[
        ("hapax_upstream_requests_total{result=\"2xx\"}", 2.0),
        ("hapax_upstream_requests_total{result=\"4xx\"}", 1.0),
        ("hapax_upstream_requests_total{result=\"5xx\"}", 0.0),
        ("hapax_upstream_requests_total{result=\"nothing_sent\"}", 1.0),
        ("hapax_upstream_requests_total{result=\"unanswered\"}", 1.0),
        ("hapax_upstream_duration_seconds_bucket{le=\"60\"}", 4.0),
        ("hapax_upstream_duration_seconds_bucket{le=\"+Inf\"}", 5.0),
    ]);
}

#[tokio::test(start_paused = true)]
async fn what_the_engine_did_is_shown() {
    let world = World::new();
    world.pay("k").await;
    let again = world.engine.begin(&ask("k")).await.unwrap();
    assert!(matches!(again, Admission::Replay(_)));
    Scraped::from(&world).await.shows(&[
        ("hapax_executions_total", 1.0),
        ("hapax_replays_total", 1.0),
        ("hapax_replays_from_cache_total", 1.0),
        ("hapax_batches_total", 2.0),
        ("hapax_batch_writes_bucket{le=\"1\"}", 2.0),
        ("hapax_batch_writes_sum", 2.0),
        ("hapax_commit_duration_seconds_count", 2.0),
    ]);
}

#[tokio::test(start_paused = true)]
async fn keys_in_doubt_are_shown_by_route_and_age_for_as_long_as_they_are_stored() {
    let world = World::new();
    let protect = || Treatment::Protect(Protection::default());
    let routes = Routes::new(protect()).unwrap();
    let routes = routes.route(Method::POST, "/payments", protect()).unwrap();
    let shown =
        |age: &str| format!("hapax_keys_in_doubt{{route=\"POST /payments\",age=\"{age}\"}}");
    let oldest = "hapax_keys_in_doubt_oldest_seconds{route=\"POST /payments\"}";
    let look = async || {
        world.meters.look_for_doubts(&world.engine, &routes).await.unwrap();
        Scraped::from(&world).await
    };
    look().await.shows(&[(&shown("under_1m"), 0.0), (oldest, 0.0)]);
    world.leave_in_doubt("first").await;
    tokio::time::sleep(Duration::from_secs(7200)).await;
    world.leave_in_doubt("second").await;
    advance(Duration::from_secs(30)).await;
    let page = look().await;
    page.shows(&[
        (&shown("under_1m"), 1.0),
        (&shown("under_1h"), 0.0),
        (&shown("under_1d"), 1.0),
        (&shown("over_1d"), 0.0),
        (oldest, 7230.0),
        ("hapax_keys_in_doubt{route=\"otherwise\",age=\"under_1d\"}", 0.0),
        ("hapax_keys_in_doubt{route=\"elsewhere\",age=\"under_1d\"}", 0.0),
        ("hapax_left_in_doubt_total", 2.0),
    ]);
    let order = json!({
        "fence": 1, "who": "ann", "why": "the bank has it", "as": "completed",
        "outcome": { "status": 201 },
    });
    for key in ["first", "second"] {
        let path = format!("/v1/operations/{}/resolve", id(key));
        assert_eq!(world.order(&path, &order).await.status, StatusCode::OK);
    }
    advance(Duration::from_secs(5)).await;
    let looked = "hapax_keys_in_doubt_looked_seconds";
    Scraped::from(&world).await.shows(&[(&shown("under_1d"), 1.0), (looked, 5.0)]);
    look().await.shows(&[(&shown("under_1d"), 0.0), (oldest, 0.0), (looked, 0.0)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_run_and_came_to_no_answer_is_counted_apart() {
    let world = World::new();
    let meter = world.meters.meter(&labels(&["POST /payments", "otherwise"]));
    let timed_out = Verdict::Unanswered(Code::ExecutionTimedOut);
    meter.record(&handled(timed_out, 0), MILLISECOND);
    meter.record(&handled(Verdict::Executed, 0), MILLISECOND);
    Scraped::from(&world).await.shows(&[
        ("hapax_requests_total{route=\"POST /payments\",verdict=\"unanswered\"}", 1.0),
        ("hapax_requests_total{route=\"POST /payments\",verdict=\"executed\"}", 1.0),
        ("hapax_unanswered_total{code=\"execution-timed-out\"}", 1.0),
        ("hapax_unanswered_total{code=\"execution-not-started\"}", 0.0),
    ]);
}

#[tokio::test(start_paused = true)]
async fn a_route_label_cannot_break_the_page() {
    let world = World::new();
    let meter = world.meters.meter(&labels(&["POST /a\"} 7\n# TYPE x", "otherwise"]));
    meter.record(&handled(Verdict::Executed, 0), MILLISECOND);
    let series = "hapax_requests_total{route=\"POST /a\\\"} 7\\n# TYPE x\",verdict=\"executed\"}";
    Scraped::from(&world).await.shows(&[(series, 1.0)]);
}

#[tokio::test(start_paused = true)]
async fn the_document_lists_exactly_the_metrics_there_are() {
    let document = include_str!("../../../../../docs/metrics.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `hapax_"));
    let listed: BTreeMap<_, _> = rows
        .map(|row| {
            let mut cells = row.split('|').map(str::trim);
            let name = cells.next().unwrap().trim_end_matches('`');
            (format!("hapax_{name}"), cells.next().unwrap().to_owned())
        })
        .collect();
    assert_eq!(listed, Scraped::from(&World::new()).await.kinds);
}
