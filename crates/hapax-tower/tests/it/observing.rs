//! Watching first: everything passes as it came, and what would have been done is told.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use hapax_core::Policy;
use hapax_engine::{Engine, Options};
use hapax_tower::{
    Currency, IdempotencyLayer, KeyRule, Money, Observation, Observer, Protection, RepeatedWorth,
    Routes, Tenancy, Treatment, WorthCurrency, WorthRule,
};
use http::{Method, Request};
use http_body::Frame;
use http_body_util::StreamBody;
use tower::ServiceExt;

use crate::world::{Answer, Service, Wire, keyed, post, router, send, service};

/// A service whose requests are watched, on a store that nobody reaches.
struct Watched {
    service: Arc<Service>,
    app: axum::Router,
    seen: Arc<Mutex<Vec<Observation>>>,
    observer: Observer,
}

impl Watched {
    fn new(protection: Protection) -> Self {
        Self::routed(Routes::new(Treatment::Observe(protection)).unwrap(), 1000)
    }

    fn routed(routes: Routes, keys_max: usize) -> Self {
        let seen = Arc::<Mutex<Vec<Observation>>>::default();
        let told = Arc::clone(&seen);
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let tell = move |seen: &Observation| told.lock().unwrap().push(seen.clone());
        let observer = Observer::with_peers(keys_max, move |_| Some(here), tell);
        let store = Wire::new();
        store.away(true);
        let engine = Engine::start(store, Options::default());
        let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
        let service = service(|| unreachable!());
        let app = router(&service).layer(layer.observed_by(observer.clone()));
        Self { service, app, seen, observer }
    }

    async fn send(&self, request: http::request::Builder, body: &str) -> Answer {
        send(&self.app, request, body).await
    }

    /// What was seen since somebody last looked.
    fn words(&self) -> Vec<&'static str> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.iter().map(|seen| seen.verdict.as_str()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn everything_passes_and_what_would_have_been_done_is_told() {
    let watched = Watched::new(Protection::default());
    for (request, body, word) in [
        (keyed("/pay"), "100", "executed"),
        (keyed("/402"), "100", "executed"),
        (keyed("/402"), "100", "replayed_failure"),
        (keyed("/503"), "100", "executed"),
        (keyed("/503"), "100", "executed"),
        (keyed("/504"), "100", "executed"),
        (keyed("/504"), "100", "in_doubt"),
        (post("/pay"), "100", "key_missing"),
        (post("/pay"), "100", "key_missing_again"),
        (post("/pay").header("idempotency-key", ""), "100", "key_malformed"),
        (post("/pay").header("idempotency-key", "a, b"), "100", "key_malformed"),
        (Request::post("/pay").header("idempotency-key", "k-1"), "100", "tenant_unknown"),
        (Request::post("/pay").header("idempotency-key", "k-1"), "100", "tenant_unknown_again"),
        (Request::post("/pay"), "100", "tenant_unknown"),
        (keyed("/pay").header("authorization", "Bearer bob"), "100", "tenant_unknown_again"),
    ] {
        let runs = watched.service.runs.load(std::sync::atomic::Ordering::Relaxed);
        let told = format!("{request:?} {body}");
        let answer = watched.send(request, body).await;
        assert!(answer.header("hapax-refusal").is_none() && !answer.is_replay(), "{told}");
        assert_eq!(answer.header("x-run"), Some(&*(runs + 1).to_string()), "it was run: {told}");
        assert_eq!(watched.words(), [word], "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_and_another_one_under_its_key_are_told_apart() {
    let watched = Watched::new(Protection::default());
    let json = |path| keyed(path).header("content-type", "application/json");
    watched.send(json("/pay"), r#"{"amount":100,"to":"ada"}"#).await;
    watched.send(json("/pay"), r#"{ "to": "ada", "amount": 100 }"#).await;
    watched.send(json("/pay"), r#"{"amount":999,"to":"ada"}"#).await;
    assert_eq!(watched.words(), ["executed", "replayed", "mismatch"]);
    let bare = watched.service.last.lock().unwrap().clone().unwrap();
    assert_eq!(bare["idempotency-key"], "k-1", "the key is passed on as it was written");
    assert!(!bare.contains_key("hapax-fence"));
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_the_first_runs_is_seen_and_sent_all_the_same() {
    let watched = Watched::new(Protection::default());
    let start = || {
        let app = watched.app.clone();
        tokio::spawn(async move { send(&app, keyed("/slow"), "100").await })
    };
    let first = start();
    while watched.words() != ["executed"] {
        tokio::task::yield_now().await;
    }
    let second = start();
    while watched.words() != ["busy"] {
        tokio::task::yield_now().await;
    }
    watched.service.go.add_permits(3);
    assert_eq!((first.await.unwrap().status, second.await.unwrap().status), (201, 201));
    watched.send(keyed("/slow"), "100").await;
    assert_eq!(watched.words(), ["replayed"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_leaves_an_answer_that_nobody_heard() {
    let watched = Watched::new(Protection::default());
    let app = watched.app.clone();
    let first = tokio::spawn(async move { send(&app, keyed("/slow"), "100").await });
    while watched.words() != ["executed"] {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    watched.service.go.add_permits(1);
    watched.send(keyed("/slow"), "100").await;
    assert_eq!(watched.words(), ["in_doubt"]);
}

#[tokio::test(start_paused = true)]
async fn a_body_is_passed_on_piece_by_piece_and_compared_within_its_limit() {
    let small = Protection { request_bytes_max: 5, ..Protection::default() };
    let watched = Watched::new(small);
    let pieces = async |pieces: &[&'static str]| {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
        let frames = pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Frame::data(piece)));
        let body = axum::body::Body::new(StreamBody::new(futures_util::stream::iter(frames)));
        let response =
            watched.app.clone().oneshot(keyed("/pay").body(body).unwrap()).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), 1 << 10).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    assert_eq!(pieces(&["10", "0"]).await, "run 1 of 3 bytes");
    assert_eq!(pieces(&["100"]).await, "run 2 of 3 bytes");
    assert_eq!(pieces(&["100", "100"]).await, "run 3 of 6 bytes", "all of it is passed on");
    assert_eq!(watched.words(), ["executed", "replayed", "refused"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_once_more_is_told_in_money() {
    let cents = WorthRule {
        amount: "/cents".to_owned(),
        decimals: 2,
        currency: Currency::parse("EUR").map(WorthCurrency::Always),
    };
    let paid = Protection { worth: Some(cents), ..Protection::default() };
    let watched = Watched::new(paid);
    for request in [keyed("/pay"), keyed("/pay"), keyed("/422"), keyed("/422")] {
        watched.send(request, r#"{"cents":1250}"#).await;
    }
    let euro = Money { millionths: 12_500_000, currency: Currency::parse("EUR") };
    let seen = watched.seen.lock().unwrap();
    let worth: Vec<_> = seen.iter().map(|seen| seen.worth).collect();
    assert_eq!(worth, [None, Some(RepeatedWorth::Told(euro)), None, None]);
    let tenant = seen[0].tenant.as_ref().unwrap().as_str();
    assert!(tenant.starts_with("credential:"), "{tenant}");
}

#[tokio::test(start_paused = true)]
async fn memory_has_a_limit_and_lasts_as_long_as_the_retention() {
    let hour = Policy::default().retaining(Duration::from_secs(3600)).unwrap();
    let protection = Protection { policy: hour, ..Protection::default() };
    let routes = Routes::new(Treatment::Observe(protection)).unwrap();
    let watched = Watched::routed(routes, 2);
    for path in ["/a", "/b", "/c", "/c", "/a"] {
        watched.send(keyed(path), "100").await;
    }
    assert_eq!(watched.words(), ["executed", "executed", "executed", "replayed", "executed"]);
    let memory = watched.observer.memory();
    assert_eq!((memory.keys, memory.keys_max, memory.keys_forgotten), (2, 2, 2));
    tokio::time::advance(Duration::from_secs(3600)).await;
    watched.send(keyed("/a"), "100").await;
    assert_eq!(watched.words(), ["executed"], "its retention is over");
}

#[tokio::test(start_paused = true)]
async fn no_spelling_of_a_target_is_changed_or_refused_where_nothing_is_enforced() {
    let optional = Protection { key: KeyRule::Optional, ..Protection::default() };
    let routes = Routes::new(Treatment::Observe(optional))
        .unwrap()
        .route(Method::POST, "/pay", Treatment::Observe(Protection::default()))
        .unwrap();
    let watched = Watched::routed(routes, 10);
    for (path, word) in [("/%70ay", "executed"), ("/pay", "replayed"), ("/x/../pay", "executed")] {
        assert_eq!(watched.send(keyed(path), "100").await.status, 201, "{path}");
        assert_eq!(watched.words(), [word], "{path}");
    }
    let routes = Routes::new(Treatment::PassThrough)
        .unwrap()
        .route(Method::POST, "/pay", Treatment::Protect(Protection::default()))
        .unwrap()
        .route(Method::POST, "/look", Treatment::Observe(Protection::default()))
        .unwrap();
    let watched = Watched::routed(routes, 10);
    watched.send(keyed("/x/../pay"), "100").await.check(400, "target-unclear");
    assert_eq!(watched.send(keyed("/look"), "100").await.status, 201);
    watched.send(keyed("/pay"), "100").await.check(503, "store-unavailable");
}
