//! The gateway as a whole: figures, their stream, housekeeping, configuration.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use axum::{
    body::Body,
    http::{Request, Response, StatusCode},
};
use hapax_core::store::{Filter, Page};
use hapax_tower::{Currency, Handled, Money, RepeatedWorth, Verdict};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::world::{TOKEN, World};

const SAMPLE: Duration = Duration::from_secs(10);

fn route(labels: &[&str]) -> std::sync::Arc<[String]> {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

async fn overview(world: &World) -> Value {
    let answer = world.look("/v1/overview").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json()
}

async fn listen(world: &World) -> Response<Body> {
    let request = Request::get("/v1/events").header("authorization", format!("Bearer {TOKEN}"));
    world.open(request.body(Body::empty()).unwrap()).await
}

/// The next piece of a stream; nothing at its end.
async fn next(stream: &mut Response<Body>) -> Option<String> {
    let frame = stream.body_mut().frame().await?.unwrap();
    Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
}

fn figures(event: &str) -> Value {
    let data = event.strip_prefix("event: figures\ndata: ").unwrap();
    serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_now_and_sampled_every_ten_seconds() {
    let world = World::new();
    let meter = world.meters.meter(&route(&["POST /pay", "otherwise"]));
    world.keep_figures();
    sleep(Duration::from_secs(1)).await;
    let _open = meter.connection();
    for (verdict, times) in [(Verdict::Executed, 2), (Verdict::Replayed, 3), (Verdict::Busy, 1)] {
        for _ in 0..times {
            meter.record(
                &Handled { route: 0, verdict, operation: None, repeated: None },
                Duration::from_millis(40),
            );
        }
    }
    let before = overview(&world).await;
    assert_eq!(before["samples"], json!([]));
    assert_eq!(before["now"]["verdicts"], json!({ "executed": 2, "replayed": 3, "busy": 1 }));
    assert_eq!(before["now"]["connections"], 1);
    let mut routes = before["now"]["routes"].as_array().unwrap().iter();
    let pay = routes.find(|one| one["route"] == "POST /pay").unwrap();
    assert_eq!(pay["verdicts"]["replayed"], 3);
    sleep(SAMPLE).await;
    meter.record(
        &Handled { route: 0, verdict: Verdict::Mismatch, operation: None, repeated: None },
        Duration::from_millis(1),
    );
    sleep(SAMPLE).await;
    let after = overview(&world).await;
    let samples = after["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 2);
    assert_eq!(samples[0]["verdicts"], json!({ "executed": 2, "replayed": 3, "busy": 1 }));
    assert_eq!(samples[1]["verdicts"], json!({ "mismatch": 1 }), "what is new since");
    assert_eq!(after["now"]["sample"], samples[1]);
    let spread = &samples[0]["executed"];
    let took = spread["p50_ms"].as_f64().unwrap();
    assert!((25.0..=50.0).contains(&took), "within the bucket of 40 ms: {spread}");
    assert_eq!(samples[1]["executed"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_done_again_is_told_in_money() {
    let world = World::new();
    let meter = world.meters.meter(&route(&["POST /pay", "POST /refund", "otherwise"]));
    let euro = Currency::parse("EUR");
    for (route, millionths) in [(0, 12_500_000), (0, 1_000_000), (1, 250_000)] {
        let repeated = Some(RepeatedWorth::Told(Money { millionths, currency: euro }));
        let handled = Handled { route, verdict: Verdict::Replayed, operation: None, repeated };
        meter.record(&handled, Duration::from_millis(1));
    }
    let untold = Some(RepeatedWorth::Untold);
    let handled =
        Handled { route: 1, verdict: Verdict::Replayed, operation: None, repeated: untold };
    meter.record(&handled, Duration::from_millis(1));
    assert_eq!(overview(&world).await["now"]["repeated_amounts"], json!({ "EUR": 13.75 }));
    let page = world.look("/metrics").await.text;
    for line in [
        "hapax_repeated_amount_total{route=\"POST /pay\",currency=\"EUR\"} 13.5",
        "hapax_repeated_amount_total{route=\"POST /refund\",currency=\"EUR\"} 0.25",
        "hapax_repeated_without_amount_total{route=\"POST /refund\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn everybody_who_listens_hears_the_same_at_once_and_then_as_it_changes() {
    let world = World::new();
    let meter = world.meters.meter(&route(&["POST /pay", "otherwise"]));
    world.keep_figures();
    let (mut one, mut other) = (listen(&world).await, listen(&world).await);
    assert_eq!(one.headers()["content-type"], "text/event-stream");
    let began = Instant::now();
    let first = next(&mut one).await.unwrap();
    assert_eq!(figures(&first)["verdicts"], json!({}));
    next(&mut other).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "nobody waits for the first figures");
    meter.record(
        &Handled { route: 0, verdict: Verdict::Replayed, operation: None, repeated: None },
        Duration::from_millis(1),
    );
    let second = next(&mut one).await.unwrap();
    assert_eq!(figures(&second)["verdicts"], json!({ "replayed": 1 }));
    assert_eq!(next(&mut other).await.unwrap(), second, "counted once for all");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_gateway_is_told_to_stop_and_no_other_begins() {
    let world = World::new();
    world.keep_figures();
    let mut stream = listen(&world).await;
    next(&mut stream).await.unwrap();
    world.draining.store(true, Relaxed);
    assert_eq!(next(&mut stream).await.as_deref(), Some("event: end\ndata: {}\n\n"));
    assert_eq!(next(&mut stream).await, None);
    assert_eq!(listen(&world).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_session() {
    let world = World::new();
    world.keep_figures();
    let cookie = world.sign_in(TOKEN).await;
    let request = World::by_page("GET", "/v1/events", &cookie).body(Body::empty()).unwrap();
    let mut stream = world.open(request).await;
    assert!(next(&mut stream).await.unwrap().starts_with("event: figures"));
    let out = World::by_page("DELETE", "/session", &cookie).body(Body::empty()).unwrap();
    world.send(out).await;
    assert_eq!(next(&mut stream).await.as_deref(), Some("event: end\ndata: {}\n\n"));
}

#[tokio::test(start_paused = true)]
async fn there_are_no_more_streams_than_thirty_two_and_one_that_is_left_makes_room() {
    let world = World::new();
    world.keep_figures();
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(listen(&world).await);
        assert_eq!(streams.last().unwrap().status(), StatusCode::OK);
    }
    assert_eq!(listen(&world).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    streams.pop();
    assert_eq!(listen(&world).await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_nothing_to_tell_gives_a_sign_of_life() {
    let world = World::new();
    // Nobody keeps figures here.
    let mut stream = listen(&world).await;
    let began = Instant::now();
    assert_eq!(next(&mut stream).await.as_deref(), Some(": still here\n\n"));
    assert_eq!(began.elapsed(), Duration::from_secs(15));
    assert!(timeout(Duration::from_secs(14), next(&mut stream)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn housekeeping_says_what_was_done_and_when_and_how_far_the_clock_is_trusted() {
    let world = World::new();
    world.keep_figures();
    let quiet = world.look("/v1/housekeeping").await.json();
    assert_eq!((&quiet["log"], &quiet["in_doubt"]), (&json!([]), &json!([])));
    assert_eq!(quiet["clock"]["is_trusted"], true);
    world.leave_in_doubt("k").await;
    sleep(2 * SAMPLE).await;
    let told = world.look("/v1/housekeeping").await.json();
    let entry = &told["log"][0];
    assert_eq!((&entry["name"], &entry["count"]), (&json!("left_in_doubt"), &json!(1)));
    let counts = told["counts"].as_array().unwrap();
    let left = counts.iter().find(|count| count["name"] == "left_in_doubt").unwrap();
    assert_eq!(left["count"], 1);
    // Nothing is told twice.
    sleep(3 * SAMPLE).await;
    let again = world.look("/v1/housekeeping").await.json();
    assert_eq!(again["log"].as_array().unwrap().len(), 1);
    let page = Page { after: None, limit: 10 };
    assert_eq!(world.engine.store().list(Filter::default(), page).await.unwrap().len(), 1);
    world.store.be_away();
    let away = world.look("/v1/housekeeping").await;
    assert_eq!(away.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_force_is_told_line_by_line() {
    let world = World::new();
    let told = world.look("/v1/configuration").await.json();
    assert_eq!(told["lines"], json!(["listens at http://127.0.0.1:8080", "protects http://a"]));
}
