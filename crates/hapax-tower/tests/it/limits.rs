//! What is refused before it is run: too much at once, too fast, too slow.

use std::{num::NonZeroU32, time::Duration};

use axum::{Router, body::Body};
use bytes::Bytes;
use futures_util::stream;
use hapax_core::StateTag;
use hapax_engine::{Engine, Options};
use hapax_tower::{
    Code, Handled, IdempotencyLayer, Protection, RateLimit, Routes, Share, Tenancy, TooSlow,
    Treatment, Verdict,
};
use http::Request;
use tokio::time::{Instant, advance};
use tower::ServiceExt;

use crate::world::{Wire, World, keyed, post, router, send, service};

fn limited(per_second: u32, burst: u32) -> World {
    let number = |number| NonZeroU32::new(number).unwrap();
    let limit = Some(RateLimit::per_tenant(number(per_second), number(burst)));
    World::with(Protection { limit, ..Protection::default() })
}

#[tokio::test(start_paused = true)]
async fn a_caller_over_its_limit_is_refused_and_the_key_stays_free() {
    let world = limited(1, 2);
    assert_eq!(world.pay("k-1", "100").await.status, 201);
    assert_eq!(world.pay("k-2", "100").await.status, 201);
    let refused = world.pay("k-3", "100").await;
    refused.check(429, "rate-limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let other = Request::post("/pay").header("idempotency-key", "k-3").header("authorization", "b");
    assert_eq!(world.send(other, "100").await.status, 201);
    assert_eq!(world.runs(), 3);
    advance(Duration::from_secs(1)).await;
    assert_eq!(world.pay("k-3", "100").await.status, 201);
    assert_eq!(world.runs(), 4);
}

#[tokio::test(start_paused = true)]
async fn only_what_is_run_counts_toward_the_limit() {
    let world = limited(1, 2);
    let slow = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    for _ in 0..10 {
        world.send(keyed("/slow"), "100").await.check(409, "key-in-flight");
        world.send(keyed("/slow"), "999").await.check(422, "key-reused");
    }
    world.service.go.add_permits(1);
    assert_eq!(slow.await.unwrap().status, 201);
    for _ in 0..10 {
        assert!(world.send(keyed("/slow"), "100").await.is_replay());
    }
    assert_eq!(world.pay("k-2", "100").await.status, 201);
    world.pay("k-3", "100").await.check(429, "rate-limited");
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_at_the_limit_left_nothing_in_flight() {
    let world = limited(1, 1);
    world.pay("k-1", "100").await;
    let request = post("/pay").header("idempotency-key", "k-2").body(Body::from("100")).unwrap();
    let response = world.app.clone().oneshot(request).await.unwrap();
    let handled: &Handled = response.extensions().get().unwrap();
    assert_eq!(handled.verdict, Verdict::Refused(Code::RateLimited));
    let stored = world.store.all().await;
    let state = stored.iter().find(|one| one.operation.key().as_str() == "k-2").unwrap().stamp.tag;
    assert_eq!(state, StateTag::Released);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_too_slowly_is_refused_and_claims_nothing() {
    let receive_within = Duration::from_secs(3);
    let world = World::with(Protection { receive_within, ..Protection::default() });
    let began = Instant::now();
    let drops = stream::unfold((), async |()| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, std::io::Error>("drop"), ()))
    });
    let request = keyed("/pay").body(Body::from_stream(drops)).unwrap();
    let response = world.app.clone().oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), began.elapsed()), (408, receive_within));
    assert_eq!(response.headers()["connection"], "close");
    assert!(world.store.all().await.is_empty());
    assert_eq!(world.send(keyed("/pay"), "100").await.status, 201);
}

/// Room for twenty bytes, and ten for each request.
fn narrow() -> (Router, std::sync::Arc<crate::world::Service>) {
    let engine = Engine::start(Wire::new(), Options::default());
    let protection = Protection { request_bytes_max: 10, ..Protection::default() };
    let routes = Routes::new(Treatment::Protect(protection)).unwrap();
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
    let service = service(|| unreachable!());
    (router(&service).layer(layer.buffer_at_most(20)), service)
}

fn slow(key: &str) -> http::request::Builder {
    post("/slow").header("idempotency-key", key)
}

#[tokio::test(start_paused = true)]
async fn a_request_without_room_is_refused_before_it_is_read() {
    let (app, service) = narrow();
    let start = |key: &'static str, body: &'static str| {
        let app = app.clone();
        tokio::spawn(async move { send(&app, slow(key), body).await })
    };
    let running = [start("k-1", "8 bytes!"), start("k-2", "8 bytes!")];
    while service.runs.load(std::sync::atomic::Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
    let refused = send(&app, slow("k-3"), "5 byt").await;
    refused.check(503, "overloaded");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let unread = stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, std::io::Error>>> {
        panic!("nobody may read this")
    });
    let announced = slow("k-3").header("content-length", "5").header("expect", "100-continue");
    let unread = announced.body(Body::from_stream(unread));
    assert_eq!(app.clone().oneshot(unread.unwrap()).await.unwrap().status(), 503);
    let fits = start("k-4", "4 by");
    service.go.add_permits(3);
    for one in running.into_iter().chain([fits]) {
        assert_eq!(one.await.unwrap().status, 201);
    }
    let (third, fourth) = (start("k-5", "10 bytes!!"), start("k-6", "10 bytes!!"));
    service.go.add_permits(2);
    assert_eq!((third.await.unwrap().status, fourth.await.unwrap().status), (201, 201));
}

#[tokio::test(start_paused = true)]
async fn a_body_of_unknown_length_takes_the_room_it_needs_and_no_more() {
    let (app, service) = narrow();
    let unknown = |key| {
        let body = Body::from_stream(stream::iter([Ok::<_, std::io::Error>("one")]));
        let (app, request) = (app.clone(), slow(key).body(body).unwrap());
        tokio::spawn(async move { app.oneshot(request).await.unwrap().status().as_u16() })
    };
    let mut running = Vec::new();
    for (at, key) in ["k-1", "k-2", "k-3", "k-4", "k-5", "k-6"].into_iter().enumerate() {
        running.push(unknown(key));
        while service.runs.load(std::sync::atomic::Ordering::Relaxed) < at + 1 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(unknown("k-7").await.unwrap(), 503, "there are two bytes left");
    service.go.add_permits(6);
    for one in running {
        assert_eq!(one.await.unwrap(), 201);
    }
}

/// A body that announces ten bytes and sends these, and then nothing, for as long as it is kept.
fn stalled(key: &str, sent: &'static str) -> Request<Body> {
    let sent = stream::iter([Ok::<_, std::io::Error>(sent)]);
    let body = futures_util::StreamExt::chain(sent, stream::pending());
    slow(key).header("content-length", "10").body(Body::from_stream(body)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_announced_and_not_sent_takes_no_room_from_others() {
    let (app, service) = narrow();
    let silent: Vec<_> = (0..100)
        .map(|number| tokio::spawn(app.clone().oneshot(stalled(&format!("s-{number}"), ""))))
        .collect();
    tokio::task::yield_now().await;
    service.go.add_permits(2);
    let other = |key| send(&app, slow(key), "10 bytes!!");
    assert_eq!((other("k-1").await.status, other("k-2").await.status), (201, 201));
    for silent in silent {
        assert_eq!(silent.await.unwrap().unwrap().status(), 408);
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_connection_sends_leaves_room_for_others() {
    let (app, service) = narrow();
    let share = Share::new(10, 100);
    let mut held = Vec::new();
    for number in 0..10 {
        let mut request = stalled(&format!("s-{number}"), "5 byt");
        request.extensions_mut().insert(share.clone());
        held.push(tokio::spawn(app.clone().oneshot(request)));
        tokio::task::yield_now().await;
    }
    service.go.add_permits(1);
    assert_eq!(send(&app, slow("k-1"), "10 bytes!!").await.status, 201, "another connection");
    let mut answers = Vec::new();
    for held in held {
        answers.push(held.await.unwrap().unwrap().status().as_u16());
    }
    assert_eq!(answers, [408, 408, 503, 503, 503, 503, 503, 503, 503, 503]);
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_without_its_client_counts_as_under_way_on_its_connection() {
    let (app, service) = narrow();
    let share = Share::new(100, 2);
    let request = |key: &str| {
        let mut request = slow(key).body(Body::empty()).unwrap();
        request.extensions_mut().insert(share.clone());
        request
    };
    for (at, key) in ["k-1", "k-2"].into_iter().enumerate() {
        let given_up = tokio::spawn(app.clone().oneshot(request(key)));
        while service.runs.load(std::sync::atomic::Ordering::Relaxed) < at + 1 {
            tokio::task::yield_now().await;
        }
        given_up.abort();
    }
    let refused = app.clone().oneshot(request("k-3")).await.unwrap();
    assert_eq!(refused.status(), 503, "two are still at work");
    service.go.add_permits(3);
    while !share_is_free(&app, request("k-3")).await {}
    assert_eq!(service.runs.load(std::sync::atomic::Ordering::Relaxed), 3);
}

async fn share_is_free(app: &Router, request: Request<Body>) -> bool {
    tokio::task::yield_now().await;
    app.clone().oneshot(request).await.unwrap().status() == 201
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_for_being_slow_is_told_so_and_claims_nothing() {
    let world = World::with(Protection::default());
    let failing = stream::iter([Ok("some"), Err(TooSlow)]);
    let request = keyed("/pay").body(Body::from_stream(failing)).unwrap();
    let response = world.app.clone().oneshot(request).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["connection"]),
        (408, &"close".parse().unwrap())
    );
    assert!(world.store.all().await.is_empty());
    assert_eq!(world.send(keyed("/pay"), "100").await.status, 201);
}
