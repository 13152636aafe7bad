use std::sync::atomic::Ordering::Relaxed;

use axum::http::StatusCode;
use hapax_core::{
    Store as _,
    store::{Filter, Page},
};
use hapax_engine::BELIEVED_FOR;
use serde_json::json;
use tokio::time::{Instant, advance};

use super::world::World;

#[tokio::test(start_paused = true)]
async fn a_gateway_whose_store_answers_is_alive_and_ready() {
    let world = World::new();
    for (path, document) in
        [("/healthz", json!({ "alive": true })), ("/readyz", json!({ "ready": true }))]
    {
        let answer = world.get(path).await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, document));
        assert_eq!(answer.header("cache-control"), "no-store");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_whose_store_is_away_is_alive_but_not_ready() {
    let world = World::new();
    world.store.be_away();
    let answer = world.get("/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    let document = answer.json();
    assert_eq!((&document["ready"], &document["reason"]), (&json!(false), &json!("store")));
    let detail = document["detail"].as_str().unwrap();
    assert!(detail.ends_with("unplugged"), "the cause is told: {detail}");
    assert_eq!(world.get("/healthz").await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_whose_store_only_reads_is_not_ready_until_it_writes_again() {
    let world = World::new();
    world.store.be_full(true);
    let answer = world.get("/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.ends_with("no space left"), "the cause is told: {detail}");
    world.store.be_full(false);
    advance(BELIEVED_FOR).await;
    assert_eq!(world.get("/readyz").await.status, StatusCode::OK);
    world.store.be_full(true);
    advance(BELIEVED_FOR).await;
    assert_eq!(world.get("/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn however_often_readiness_is_asked_for_it_is_written_once_in_two_seconds() {
    let world = World::new();
    for _ in 0..100 {
        assert_eq!(world.get("/readyz").await.status, StatusCode::OK);
    }
    assert_eq!(world.store.commits(), 1);
    advance(BELIEVED_FOR).await;
    assert_eq!(world.get("/readyz").await.status, StatusCode::OK);
    assert_eq!(world.store.commits(), 2);
    let page = Page { after: None, limit: 10 };
    let listed = world.store.list(Filter::default(), page).await.unwrap();
    assert!(listed.is_empty(), "nothing is left of it: {listed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_says_nothing_for_a_second_means_not_ready() {
    let world = World::new();
    world.store.be_silent();
    let asked_at = Instant::now();
    let answer = world.get("/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(asked_at.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_was_told_to_stop_is_alive_but_not_ready() {
    let world = World::new();
    world.draining.store(true, Relaxed);
    let answer = world.get("/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.json()["reason"], "draining");
    assert_eq!(world.get("/healthz").await.status, StatusCode::OK);
}
