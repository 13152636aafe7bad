//! A caller says how long it waits: nothing is run too late, nobody waits longer, and the service
//! hears what is left.

use std::{
    future::{Ready, ready},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hapax_core::StateTag;
use hapax_engine::{Engine, Options};
use hapax_tower::{
    AnswerBy, Body, BoxError, IdempotencyLayer, InFlight, Protection, Routes, Tenancy, Treatment,
};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use proptest::prelude::*;
use tokio::time::{Instant, Sleep, sleep};
use tower::{Layer, ServiceExt, service_fn};
use tower_service::Service;

use crate::world::{Answer, Wire, World, keyed, post};

fn within(millis: &str) -> http::request::Builder {
    keyed("/pay").header("hapax-deadline", millis)
}

fn grpc() -> Protection {
    Protection { grpc_timeout: true, ..Protection::default() }
}

/// What the service was told last.
fn told(world: &World, name: &str) -> Option<String> {
    let last = world.service.last.lock().unwrap();
    last.as_ref().unwrap().get(name).map(|said| said.to_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_is_no_time_is_refused_before_anything_is_claimed() {
    let world = World::new();
    for malformed in ["", "soon", "-1", "1.5", "4500ms", "9999999999999"] {
        world.send(within(malformed), "100").await.check(400, "deadline-malformed");
        let passing = Request::get("/pay").header("hapax-deadline", malformed);
        world.send(passing, "").await.check(400, "deadline-malformed");
    }
    let twice = within("1").header("hapax-deadline", "2");
    world.send(twice, "100").await.check(400, "deadline-malformed");
    assert_eq!((world.runs(), world.store.all().await.len()), (0, 0));
    let page = "/.well-known/idempotency/errors/deadline-malformed";
    let page = Request::get(page).header("hapax-deadline", "soon");
    assert_eq!(world.send(page, "").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_time_is_refused_and_nothing_is_run() {
    let world = World::new();
    world.send(within("0"), "100").await.check(504, "deadline-passed");
    let passing = Request::get("/pay").header("hapax-deadline", "0");
    world.send(passing, "").await.check(504, "deadline-passed");
    assert_eq!((world.runs(), world.store.all().await.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_service_hears_what_is_left_and_never_more_than_its_route_allows() {
    let world = World::new();
    for (key, said, heard) in
        [("a", "4500", "4500"), ("b", "60000", "25000"), ("c", "999999999999", "25000")]
    {
        let request = post("/pay").header("idempotency-key", key).header("hapax-deadline", said);
        assert_eq!(world.send(request, "100").await.status, 201);
        assert_eq!(told(&world, "hapax-deadline").as_deref(), Some(heard));
    }
    world.pay("d", "100").await;
    assert_eq!(told(&world, "hapax-deadline"), None);
    world.send(Request::get("/pay").header("hapax-deadline", "4500"), "").await;
    assert_eq!(told(&world, "hapax-deadline").as_deref(), Some("4500"));
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_on_a_body_or_a_store_is_not_left_for_the_service() {
    let world = World::new();
    world.store.takes(1500);
    assert_eq!(world.send(within("4500"), "100").await.status, 201);
    assert_eq!(told(&world, "hapax-deadline").as_deref(), Some("3000"));
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_time_is_over_finds_the_answer_under_its_key() {
    let world = World::new();
    let began = Instant::now();
    let told = world.send(keyed("/slow").header("hapax-deadline", "2000"), "100").await;
    told.check(504, "execution-timed-out");
    assert!(told.json()["detail"].as_str().unwrap().contains("same key"));
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    world.send(keyed("/slow"), "100").await.check(409, "key-in-flight");
    world.service.go.add_permits(1);
    let answer = world.send(keyed("/slow").header("prefer", "wait=5"), "100").await;
    assert_eq!((answer.status, &answer.body[..]), (201, &b"run 1 of 3 bytes"[..]));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_request_in_flight_longer_than_its_caller_does() {
    let in_flight = InFlight::Wait(Duration::from_secs(20));
    let world = World::with(Protection { in_flight, ..Protection::default() });
    let _first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    let began = Instant::now();
    let second = world.send(keyed("/slow").header("hapax-deadline", "3000"), "100").await;
    second.check(409, "key-in-flight");
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_outlasts_its_caller_is_refused_before_anything_is_claimed() {
    let world = World::new();
    let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, BoxError>>();
    let body = axum::body::Body::new(StreamBody::new(never));
    let began = Instant::now();
    let response = world.app.clone().oneshot(within("2000").body(body).unwrap()).await.unwrap();
    assert_eq!((response.status().as_u16(), began.elapsed().as_secs()), (504, 2));
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let answer = Answer { status: 504, headers: parts.headers, body };
    answer.check(504, "deadline-passed");
    assert!(world.store.all().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_came_too_late_is_given_back() {
    let world = World::new();
    world.store.takes(3000);
    world.send(within("2000"), "100").await.check(504, "deadline-passed");
    assert_eq!(world.store.all().await[0].stamp.tag, StateTag::Released);
    world.store.takes(0);
    let answer = world.send(keyed("/pay"), "100").await;
    assert_eq!((answer.status, answer.is_replay(), world.runs()), (201, false, 1));
}

/// A service that is ready after three seconds, and counts.
struct Late {
    ready: Pin<Box<Sleep>>,
    runs: Arc<AtomicUsize>,
}

impl Clone for Late {
    fn clone(&self) -> Self {
        let ready = Box::pin(sleep(Duration::from_secs(3)));
        Self { ready, runs: Arc::clone(&self.runs) }
    }
}

impl Service<Request<Body>> for Late {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.ready.as_mut().poll(cx).map(Ok)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.runs.fetch_add(1, Relaxed);
        let by = request.extensions().get::<AnswerBy>().map(|by| by.left().as_millis());
        ready(Ok(Response::new(Full::from(format!("{by:?}")))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_not_ready_in_time_is_not_called_and_the_key_is_free() {
    let (store, runs) = (Wire::new(), Arc::<AtomicUsize>::default());
    let engine = Engine::start(store.clone(), Options::default());
    let routes = Routes::new(Treatment::Protect(Protection::default())).unwrap();
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
    let late = Late { ready: Box::pin(sleep(Duration::ZERO)), runs: Arc::clone(&runs) };
    let service = layer.layer(late);
    let ask = async |millis: &str| {
        let request = within(millis).body(Full::<Bytes>::from("100")).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
    };
    assert_eq!(ask("2000").await.0, 504);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(runs.load(Relaxed), 0);
    assert_eq!(store.all().await[0].stamp.tag, StateTag::Released);
    assert_eq!(ask("5000").await, (200, "Some(2000)".into()));
}

#[tokio::test(start_paused = true)]
async fn grpc_timeout_is_read_and_set_where_the_route_asks_for_it() {
    let world = World::with(grpc());
    let ask = async |key: &str, said: &[(&str, &str)]| {
        let head = post("/pay").header("idempotency-key", key);
        let head = said.iter().fold(head, |head, (name, value)| head.header(*name, *value));
        world.send(head, "100").await
    };
    for (key, said) in [
        ("a", &[("grpc-timeout", "4500m")][..]),
        ("b", &[("hapax-deadline", "4500")]),
        ("c", &[("hapax-deadline", "9000"), ("grpc-timeout", "4500000u")]),
        ("d", &[("hapax-deadline", "4500"), ("grpc-timeout", "1M")]),
    ] {
        assert_eq!(ask(key, said).await.status, 201);
        assert_eq!(told(&world, "hapax-deadline").as_deref(), Some("4500"), "{key}");
        assert_eq!(told(&world, "grpc-timeout").as_deref(), Some("4500000u"), "{key}");
    }
    ask("e", &[("grpc-timeout", "soon")]).await.check(400, "deadline-malformed");
    ask("e", &[("grpc-timeout", "0S")]).await.check(504, "deadline-passed");
    assert_eq!(world.runs(), 4);
}

#[tokio::test(start_paused = true)]
async fn elsewhere_grpc_timeout_is_none_of_the_layers_business() {
    let world = World::new();
    for said in ["soon", "0S", "1M"] {
        let request = post("/pay").header("idempotency-key", said).header("grpc-timeout", said);
        assert_eq!(world.send(request, "100").await.status, 201);
        assert_eq!(told(&world, "grpc-timeout").as_deref(), Some(said));
        assert_eq!(told(&world, "hapax-deadline"), None);
    }
}

/// Sends these values to a service that takes no time, and gives back its status.
async fn treated(deadline: &[u8], grpc_timeout: &[u8], retry: &[u8]) -> u16 {
    let engine = Engine::start(Wire::new(), Options::default());
    let routes = Routes::new(Treatment::Protect(grpc())).unwrap();
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
    let service = layer.layer(service_fn(async |request: Request<Body>| {
        // What is passed on was understood here, or it would be refused further in.
        assert!(hapax_tower::signal::time_left(request.headers()).is_ok());
        assert!(hapax_tower::signal::grpc_time_left(request.headers()).is_ok());
        let retry = request.headers().get("hapax-retry");
        assert!(retry.is_none_or(|retry| retry == "never"));
        Ok::<_, BoxError>(Response::new(Full::<Bytes>::from("done")))
    }));
    let request = keyed("/pay")
        .header("hapax-deadline", deadline)
        .header("grpc-timeout", grpc_timeout)
        .header("hapax-retry", retry)
        .body(Full::<Bytes>::from("100"))
        .unwrap();
    service.oneshot(request).await.unwrap().status().as_u16()
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let any = prop::collection::vec(prop_oneof![0x20..=0x7e_u8, 0x80..=0xff_u8], 0..20);
    let near = "[0-9]{0,14}[HMSmun]?".prop_map(String::into_bytes);
    prop_oneof![any, near, Just(b"never".to_vec())]
}

proptest! {
    #[test]
    fn whatever_is_said_is_refused_or_treated(
        deadline in value(),
        grpc_timeout in value(),
        retry in value(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let status = runtime.block_on(treated(&deadline, &grpc_timeout, &retry));
        prop_assert!(matches!(status, 200 | 400 | 504), "{status}");
    }
}
