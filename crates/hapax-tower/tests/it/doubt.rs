//! What happens when the service gives no complete answer.

use std::time::Duration;

use axum::response::IntoResponse;
use futures_util::stream;
use hapax_core::Recovery;
use hapax_tower::{Protection, ResultPolicy, Tenancy};

use crate::world::{World, keyed, policy};

#[tokio::test(start_paused = true)]
async fn a_panic_is_caught_and_the_operation_is_in_doubt() {
    let world = World::new();
    world.send(keyed("/panic"), "100").await.check(500, "execution-panicked");
    let second = world.send(keyed("/panic"), "100").await;
    second.check(409, "outcome-in-doubt");
    assert!(second.json()["operation"].as_str().unwrap().contains("/operations/"));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_takes_too_long_is_stopped_and_in_doubt() {
    let world = World::new();
    let began = tokio::time::Instant::now();
    world.send(keyed("/slow"), "100").await.check(504, "execution-timed-out");
    assert_eq!(began.elapsed().as_secs(), 25);
    world.send(keyed("/slow"), "100").await.check(409, "outcome-in-doubt");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn under_resend_the_next_request_takes_a_doubtful_one_over_with_a_higher_fence() {
    let policy = policy(Recovery::Resend);
    let recover_for = Duration::ZERO;
    let world = World::with(Protection { policy, recover_for, ..Protection::default() });
    world.send(keyed("/slow"), "100").await.check(504, "execution-timed-out");
    world.service.go.add_permits(1);
    assert_eq!(world.send(keyed("/slow"), "100").await.status, 201);
    let last = world.service.last.lock().unwrap().clone().unwrap();
    assert_eq!(last["hapax-fence"], "2");
}

#[tokio::test(start_paused = true)]
async fn at_most_once_replays_what_the_client_was_told_in_place_of_an_answer() {
    let (policy, results) = (policy(Recovery::Hold), ResultPolicy::AtMostOnce);
    let world = World::with(Protection { policy, results, ..Protection::default() });
    let first = world.send(keyed("/panic"), "100").await;
    first.check(500, "execution-panicked");
    let second = world.send(keyed("/panic"), "100").await;
    second.check(500, "execution-panicked");
    assert!(second.is_replay());
    assert_eq!(first.body, second.body);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_never_stored_as_a_success() {
    let world = World::making(|| {
        let pieces = [Ok("half"), Err(std::io::Error::other("cut"))];
        axum::body::Body::from_stream(stream::iter(pieces)).into_response()
    });
    world.send(keyed("/made"), "100").await.check(502, "execution-unanswered");
    world.send(keyed("/made"), "100").await.check(409, "outcome-in-doubt");
    assert_eq!(world.runs(), 1);
}

fn large(end: Result<&'static [u8], &'static str>) -> axum::response::Response {
    let start = [b"x".repeat(1000), b"x".repeat(1000), b"x".repeat(1000), b"x".repeat(1000)];
    let end = end.map(<[u8]>::to_vec).map_err(std::io::Error::other);
    let pieces = start.into_iter().map(Ok).chain([end]);
    axum::body::Body::from_stream(stream::iter(pieces.collect::<Vec<_>>())).into_response()
}

#[tokio::test(start_paused = true)]
async fn a_response_too_large_to_keep_is_passed_on_and_the_retry_is_told_so() {
    let protection = Protection { response_bytes_max: 1500, ..Protection::default() };
    let world = World::build(protection, Tenancy::credential(), || large(Ok(b"end")));
    let first = world.send(keyed("/made"), "100").await;
    assert_eq!((first.status, first.body.len()), (200, 4003));
    let second = world.send(keyed("/made"), "100").await;
    second.check(409, "response-not-retained");
    assert!(second.is_replay());
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_large_response_that_breaks_off_breaks_off_for_the_client_and_is_in_doubt() {
    let protection = Protection { response_bytes_max: 1500, ..Protection::default() };
    let world = World::build(protection, Tenancy::credential(), || large(Err("cut")));
    let request = keyed("/made").body(axum::body::Body::from("100")).unwrap();
    let response = tower::ServiceExt::oneshot(world.app.clone(), request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(http_body_util::BodyExt::collect(response.into_body()).await.is_err());
    world.send(keyed("/made"), "100").await.check(409, "outcome-in-doubt");
}

#[tokio::test(start_paused = true)]
async fn a_large_response_is_read_to_its_end_without_its_client() {
    let protection = Protection { response_bytes_max: 1500, ..Protection::default() };
    let world = World::build(protection, Tenancy::credential(), || large(Ok(b"end")));
    let request = keyed("/made").body(axum::body::Body::from("100")).unwrap();
    let response = tower::ServiceExt::oneshot(world.app.clone(), request).await.unwrap();
    drop(response);
    let second = world.send(keyed("/made").header("prefer", "wait=30"), "100").await;
    second.check(409, "response-not-retained");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_does_not_hold_the_operation() {
    let protection = Protection { response_bytes_max: 1500, ..Protection::default() };
    let world = World::build(protection, Tenancy::credential(), || large(Ok(b"end")));
    let request = keyed("/made").body(axum::body::Body::from("100")).unwrap();
    let response = tower::ServiceExt::oneshot(world.app.clone(), request).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let second = world.send(keyed("/made"), "100").await;
    second.check(409, "response-not-retained");
    assert!(http_body_util::BodyExt::collect(response.into_body()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_response_with_more_headers_than_fit_is_known_to_have_been() {
    let world = World::making(|| {
        let mut response = "".into_response();
        for at in 0..200 {
            let name = http::HeaderName::try_from(format!("x-{at}")).unwrap();
            response.headers_mut().insert(name, http::HeaderValue::from_static("1"));
        }
        response
    });
    assert_eq!(world.send(keyed("/made"), "100").await.status, 200);
    world.send(keyed("/made"), "100").await.check(409, "response-not-retained");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_neither_stops_nor_loses_the_work() {
    let world = World::new();
    let first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    first.abort();
    assert!(first.await.is_err());
    world.service.go.add_permits(1);
    let second = world.send(keyed("/slow").header("prefer", "wait=30"), "100").await;
    assert!(second.is_replay());
    assert_eq!((second.status, world.runs()), (201, 1));
}
