//! What a result means is the route's policy, not the layer's.

use hapax_core::Recovery;
use hapax_tower::{
    IdempotencyLayer, InFlight, InvalidRoute, Protection, ResultPolicy, Routes, Tenancy, Treatment,
};
use http::Method;

use crate::world::{Wire, World, keyed, policy, post, router, send, service};

/// Whether the second request is a replay of the first, for an answer with this status.
async fn check(results: ResultPolicy, status: u16, replayed: bool) {
    let policy = policy(Recovery::Hold);
    let world = World::with(Protection { policy, results, ..Protection::default() });
    let path = format!("/{status}");
    let first = world.send(keyed(&path), "100").await;
    let second = world.send(keyed(&path), "100").await;
    assert_eq!((first.status, second.status), (status, status), "{results:?}");
    assert_eq!(second.is_replay(), replayed, "{results:?} {status}");
    assert_eq!(first.header("idempotency-expires").is_some(), replayed, "{results:?} {status}");
    assert_eq!(world.runs(), if replayed { 1 } else { 2 });
}

#[tokio::test(start_paused = true)]
async fn results_are_stored_or_given_back_as_the_policy_says() {
    for (status, terminal, stripe, success_only) in [
        (200, true, true, true),
        (404, true, true, false),
        (422, true, true, false),
        (401, false, false, false),
        (429, false, false, false),
        (500, false, true, false),
        (503, false, true, false),
    ] {
        check(ResultPolicy::Terminal, status, terminal).await;
        check(ResultPolicy::Stripe, status, stripe).await;
        check(ResultPolicy::SuccessOnly, status, success_only).await;
        check(ResultPolicy::AtMostOnce, status, true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_route_that_matches_counts() {
    let store = Wire::new();
    let engine = hapax_engine::Engine::start(store, hapax_engine::Options::default());
    let routes = Routes::new(Treatment::PassThrough)
        .unwrap()
        .route(Method::POST, "/pay/{id}", Treatment::Protect(Protection::default()))
        .unwrap()
        .route(Method::POST, "/free/*", Treatment::PassThrough)
        .unwrap();
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
    let app = router(&service(|| unreachable!())).layer(layer);
    send(&app, post("/pay/seven"), "").await.check(400, "key-missing");
    assert_eq!(send(&app, post("/pay"), "").await.status, 201);
    assert_eq!(send(&app, post("/free/x/y"), "").await.status, 201);
    assert_eq!(send(&app, post("/pay/seven").method("PUT"), "").await.status, 201);
}

#[test]
fn contradictions_are_refused_before_anything_runs() {
    let refuse = |protection| Routes::new(Treatment::Protect(protection)).unwrap_err();
    let lease = Protection::default().policy.lease();
    let timeout = Protection { timeout: lease, ..Protection::default() };
    assert_eq!(refuse(timeout), InvalidRoute::Timeout { timeout: lease, lease });
    let bytes = 1 << 30;
    let request = Protection { request_bytes_max: bytes, ..Protection::default() };
    assert_eq!(refuse(request), InvalidRoute::RequestCap { bytes });
    let response = Protection { response_bytes_max: bytes, ..Protection::default() };
    assert_eq!(refuse(response), InvalidRoute::ResponseCap { bytes });
    let probe = policy(Recovery::Probe);
    assert_eq!(refuse(Protection { policy: probe, ..Protection::default() }), InvalidRoute::Probe);
    let routes = || Routes::new(Treatment::PassThrough).unwrap();
    assert!(routes().route(Method::GET, "/pay", Treatment::PassThrough).is_err());
    assert!(routes().route(Method::POST, "pay", Treatment::PassThrough).is_err());
    assert!(routes().route(Method::POST, "/*/pay", Treatment::PassThrough).is_err());
}

#[tokio::test(start_paused = true)]
async fn requests_are_not_accepted_for_later_where_nobody_would_run_them() {
    let accept = Protection { in_flight: InFlight::Accept, ..Protection::default() };
    let routes = Routes::new(Treatment::Protect(accept)).unwrap();
    let engine = hapax_engine::Engine::start(Wire::new(), hapax_engine::Options::default());
    let refused = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap_err();
    assert_eq!(refused, InvalidRoute::NobodyForLater);
    let world = World::new();
    let answer = world.send(keyed("/pay").header("prefer", "respond-async"), "100").await;
    assert_eq!(answer.status, 201);
}
