//! The store fails, and the layer says so instead of guessing.

use std::time::Duration;

use hapax_core::OperationId;
use hapax_tower::{Protection, StoreDown};

use crate::world::{World, keyed};

async fn only_operation(world: &World) -> OperationId {
    world.store.all().await[0].operation.id()
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_while_the_store_is_away() {
    let world = World::new();
    world.store.away(true);
    let answer = world.pay("k-1", "100").await;
    answer.check(503, "store-unavailable");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(world.runs(), 0);
    world.store.away(false);
    assert_eq!(world.pay("k-1", "100").await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_route_may_run_without_protection_and_says_so_each_time() {
    let store_down = StoreDown::RunUnprotected;
    let world = World::with(Protection { store_down, ..Protection::default() });
    world.store.away(true);
    for _ in 0..2 {
        let answer = world.pay("k-1", "100").await;
        assert_eq!(answer.status, 201);
        assert_eq!(answer.header("hapax-unprotected"), Some("true"));
        assert_eq!(answer.header("idempotency-expires"), None);
    }
    assert_eq!(world.runs(), 2);
    world.store.away(false);
    assert_eq!(world.pay("k-1", "100").await.header("hapax-unprotected"), None);
}

#[tokio::test(start_paused = true)]
async fn a_lost_confirmation_is_resolved_by_reading_again() {
    let world = World::new();
    world.store.loses_answers(true);
    assert_eq!(world.pay("k-1", "100").await.status, 201);
    assert!(world.pay("k-1", "100").await.is_replay());
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_recorded_is_not_told_as_if_it_were() {
    let world = World::new();
    let first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    world.store.away(true);
    world.service.go.add_permits(1);
    let first = first.await.unwrap();
    first.check(503, "outcome-not-recorded");
    assert!(first.header("retry-after").is_some());
    world.store.away(false);
    tokio::time::advance(Duration::from_secs(60)).await;
    world.send(keyed("/slow"), "100").await.check(409, "outcome-in-doubt");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_never_served_and_never_run_over() {
    let world = World::new();
    world.pay("k-1", "100").await;
    let id = only_operation(&world).await;
    world.store.memory.tamper(id, |row| {
        let sealed = row.outcome.as_mut().unwrap();
        sealed.body = bytes::Bytes::from_static(b"run 9 of 9 bytes");
    });
    let fresh = fresh_process(&world);
    let answer = crate::world::send(&fresh, keyed("/pay"), "100").await;
    answer.check(500, "stored-response-corrupt");
    assert!(!String::from_utf8_lossy(&answer.body).contains("run 9"));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_newer_version_is_refused_until_the_upgrade() {
    let world = World::new();
    world.pay("k-1", "100").await;
    let id = only_operation(&world).await;
    world.store.memory.tamper(id, |row| row.format = 99);
    let fresh = fresh_process(&world);
    let answer = crate::world::send(&fresh, keyed("/pay"), "100").await;
    answer.check(503, "stored-by-newer-version");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_shuts_down_begins_nothing_new() {
    let world = World::new();
    assert!(world.engine.shut_down(Duration::from_secs(1)).await);
    world.pay("k-1", "100").await.check(503, "shutting-down");
    assert_eq!(world.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn more_claims_than_may_wait_are_refused() {
    let store = crate::world::Wire::new();
    let options = hapax_engine::Options { queued_claims_max: 0, ..Default::default() };
    let engine = hapax_engine::Engine::start(store, options);
    let routes = hapax_tower::Routes::new(hapax_tower::Treatment::Protect(Protection::default()));
    let tenancy = hapax_tower::Tenancy::credential();
    let layer = hapax_tower::IdempotencyLayer::new(engine, tenancy, routes.unwrap()).unwrap();
    let app = crate::world::router(&crate::world::service(|| unreachable!())).layer(layer);
    crate::world::send(&app, keyed("/pay"), "100").await.check(503, "overloaded");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_claims_does_not_switch_the_protection_off() {
    let options = hapax_engine::Options { queued_claims_max: 0, ..Default::default() };
    let engine = hapax_engine::Engine::start(crate::world::Wire::new(), options);
    let store_down = StoreDown::RunUnprotected;
    let protection = Protection { store_down, ..Protection::default() };
    let routes = hapax_tower::Routes::new(hapax_tower::Treatment::Protect(protection));
    let tenancy = hapax_tower::Tenancy::credential();
    let layer = hapax_tower::IdempotencyLayer::new(engine, tenancy, routes.unwrap()).unwrap();
    let service = crate::world::service(|| unreachable!());
    let app = crate::world::router(&service).layer(layer);
    crate::world::send(&app, keyed("/pay"), "100").await.check(503, "overloaded");
    assert_eq!(service.runs.load(std::sync::atomic::Ordering::Relaxed), 0);
}

/// The same service in another process, whose memory is empty.
fn fresh_process(world: &World) -> axum::Router {
    let engine = hapax_engine::Engine::start(world.store.clone(), hapax_engine::Options::default());
    let routes = hapax_tower::Routes::new(hapax_tower::Treatment::Protect(Protection::default()));
    let tenancy = hapax_tower::Tenancy::credential();
    let layer = hapax_tower::IdempotencyLayer::new(engine, tenancy, routes.unwrap()).unwrap();
    crate::world::router(&world.service).layer(layer)
}
