//! What clients can look up.

use hapax_tower::{Code, Protection, Routes, Treatment, openapi_fragment, published_policy};
use http::{Method, Request};

use crate::world::{World, post};

#[tokio::test(start_paused = true)]
async fn the_policy_in_force_is_published() {
    let world = World::new();
    let answer = world.send(Request::get("/.well-known/idempotency"), "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let otherwise = &answer.json()["otherwise"];
    assert_eq!(otherwise["header"], "idempotency-key");
    assert_eq!(otherwise["retention_seconds"], 24 * 60 * 60);
    assert_eq!(otherwise["results"], "terminal");
    assert_eq!(world.runs(), 0);
}

#[test]
fn each_route_is_published_and_described_for_openapi() {
    let routes = Routes::new(Treatment::PassThrough)
        .unwrap()
        .route(Method::POST, "/payments/{id}", Treatment::Protect(Protection::default()))
        .unwrap();
    let policy = published_policy(&routes);
    assert_eq!(policy["otherwise"]["protected"], false);
    assert_eq!(policy["routes"][0]["path"], "/payments/{id}");
    let fragment = openapi_fragment(&routes);
    let operation = &fragment["paths"]["/payments/{id}"]["post"];
    assert_eq!(operation["parameters"][0]["required"], true);
    assert!(operation["responses"]["422"]["description"].is_string());
}

#[tokio::test(start_paused = true)]
async fn the_type_of_every_problem_is_a_page_that_is_there() {
    let world = World::new();
    let problem = world.send(post("/pay"), "100").await.json();
    let page = world.send(Request::get(problem["type"].as_str().unwrap()), "").await;
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with(b"# `key-missing`"));
    for code in Code::ALL {
        let address = format!("/.well-known/idempotency/errors/{}", code.code());
        let page = world.send(Request::get(address), "").await;
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(text.starts_with(&format!("# `{}`", code.code())));
        assert!(text.contains(&format!("Status {}.", code.status().as_u16())), "{text}");
        assert!(text.contains(code.title()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_problems_may_be_elsewhere() {
    let store = crate::world::Wire::new();
    let engine = hapax_engine::Engine::start(store, hapax_engine::Options::default());
    let routes = Routes::new(Treatment::Protect(Protection::default())).unwrap();
    let site = hapax_tower::Site::default().errors_at("https://example.com/docs/errors");
    let tenancy = hapax_tower::Tenancy::credential();
    let layer = hapax_tower::IdempotencyLayer::new(engine, tenancy, routes).unwrap().site(site);
    let app = crate::world::router(&crate::world::service(|| unreachable!())).layer(layer);
    let problem = crate::world::send(&app, post("/pay"), "").await;
    problem.check(400, "key-missing");
    assert_eq!(problem.json()["type"], "https://example.com/docs/errors/key-missing");
}
