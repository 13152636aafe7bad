//! The client and the layer, one at each end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use axum::{Router, routing::post};
use hapax_core::{Salt, Timestamp, memory};
use hapax_engine::{Engine, Options};
use hapax_tower::{IdempotencyLayer, Protection, Routes, Tenancy, Treatment};

use crate::server::{builder, serve};

/// A payment service behind the layer, and how often it has charged somebody.
async fn payments() -> (String, Arc<AtomicUsize>) {
    let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
    let engine = Engine::start(store, Options::default());
    let routes = Routes::new(Treatment::Protect(Protection::default())).expect("routes");
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).expect("a layer");
    let charged = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&charged);
    let charge = move || async move { format!("charge {}", counted.fetch_add(1, Relaxed) + 1) };
    (serve(Router::new().route("/charges", post(charge)).layer(layer)).await, charged)
}

#[tokio::test]
async fn an_operation_has_one_effect_however_often_it_is_sent() {
    let (url, charged) = payments().await;
    let directory = tempfile::tempdir().expect("a directory");
    let client = builder().header("Authorization", "Bearer a");
    let client = client.journal(directory.path().join("client.db")).build().expect("a client");
    let send = || client.operation("charge-42").post(format!("{url}/charges")).body("5").send();
    let first = send().await.expect("an answer");
    assert_eq!((first.text().as_str(), first.recorded(), first.attempts()), ("charge 1", false, 1));
    let second = send().await.expect("an answer");
    assert_eq!((second.text().as_str(), second.recorded()), ("charge 1", true));
    assert_eq!(second.key(), first.key());
    assert_eq!(charged.load(Relaxed), 1);
}

#[tokio::test]
async fn an_answer_to_an_earlier_attempt_says_that_it_is_a_replay() {
    let (url, charged) = payments().await;
    let client = builder().header("Authorization", "Bearer a").build().expect("a client");
    let send = || client.post(format!("{url}/charges")).key("order-7").send();
    assert!(!send().await.expect("an answer").replayed());
    let second = send().await.expect("an answer");
    assert!(second.replayed() && !second.recorded());
    assert_eq!((second.text().as_str(), charged.load(Relaxed)), ("charge 1", 1));
}
