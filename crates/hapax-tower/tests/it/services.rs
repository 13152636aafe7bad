//! Any tower service will do, also one that is not ready or fails.

use std::{
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax_engine::{Engine, Options};
use hapax_tower::{
    Body, Idempotency, IdempotencyLayer, NothingSent, Protection, Routes, Tenancy, Treatment,
};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service};

use crate::world::{Wire, keyed};

const WORKING: u8 = 0;
const NEVER_READY: u8 = 1;
const REFUSING: u8 = 2;
const FAILING: u8 = 3;
const UNCONNECTED: u8 = 4;

/// What other layers make of an error.
#[derive(Debug, thiserror::Error)]
#[error("a layer in between failed")]
struct Wrapped(#[source] NothingSent);

#[derive(Debug, Clone, Default)]
struct Moody {
    mood: Arc<AtomicU8>,
    runs: Arc<AtomicUsize>,
}

impl Service<Request<Body>> for Moody {
    type Response = Response<Full<Bytes>>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self.mood.load(Relaxed) {
            NEVER_READY => Poll::Pending,
            REFUSING => Poll::Ready(Err(std::io::Error::other("too busy"))),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        self.runs.fetch_add(1, Relaxed);
        ready(match self.mood.load(Relaxed) {
            FAILING => Err(std::io::Error::other("no answer")),
            UNCONNECTED => {
                let cause = NothingSent::new("connection refused");
                Err(std::io::Error::other(Wrapped(cause)))
            }
            _ => Ok(Response::new(Full::new(Bytes::from_static(b"done")))),
        })
    }
}

fn protected(service: &Moody) -> Idempotency<Moody> {
    let engine = Engine::start(Wire::new(), Options::default());
    let routes = Routes::new(Treatment::Protect(Protection::default())).unwrap();
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
    layer.layer(service.clone())
}

async fn ask(service: &Idempotency<Moody>) -> (u16, String) {
    let request = keyed("/pay").body(Full::new(Bytes::new())).unwrap();
    let response = service.clone().call(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test(start_paused = true)]
async fn a_replay_does_not_wait_for_a_service_that_is_not_ready() {
    let moody = Moody::default();
    let service = protected(&moody);
    assert_eq!(ask(&service).await, (200, "done".to_owned()));
    moody.mood.store(NEVER_READY, Relaxed);
    assert_eq!(ask(&service).await, (200, "done".to_owned()));
    assert_eq!(moody.runs.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_refuses_before_it_began_leaves_the_key_free() {
    let moody = Moody::default();
    let service = protected(&moody);
    moody.mood.store(REFUSING, Relaxed);
    let (status, problem) = ask(&service).await;
    assert!(status == 503 && problem.contains("execution-not-started"), "{problem}");
    moody.mood.store(WORKING, Relaxed);
    assert_eq!(ask(&service).await, (200, "done".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_without_an_answer_leaves_a_doubt() {
    let moody = Moody::default();
    let service = protected(&moody);
    moody.mood.store(FAILING, Relaxed);
    let (status, problem) = ask(&service).await;
    assert!(status == 502 && problem.contains("execution-unanswered"), "{problem}");
    moody.mood.store(WORKING, Relaxed);
    let (status, problem) = ask(&service).await;
    assert!(status == 409 && problem.contains("outcome-in-doubt"), "{problem}");
    assert_eq!(moody.runs.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_left_leaves_the_key_free() {
    let moody = Moody::default();
    let service = protected(&moody);
    moody.mood.store(UNCONNECTED, Relaxed);
    let (status, problem) = ask(&service).await;
    assert!(status == 503 && problem.contains("execution-not-started"), "{problem}");
    moody.mood.store(WORKING, Relaxed);
    assert_eq!(ask(&service).await, (200, "done".to_owned()));
    assert_eq!(moody.runs.load(Relaxed), 2);
}
