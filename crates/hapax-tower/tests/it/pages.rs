//! What clients can look up.

use hapax_tower::{
    BodyForm, Code, Dialect, InFlight, Protection, RateLimit, Routes, Tenancy, Treatment,
    openapi_fragment, published_policy,
};
use http::{Method, Request};
use serde_json::Value;

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

/// The document of one route, and what it says about it.
fn described(pattern: &str, protection: Protection) -> (Value, Value) {
    let routes = Routes::new(Treatment::PassThrough)
        .unwrap()
        .route(Method::POST, pattern, Treatment::Protect(protection))
        .unwrap();
    let policy = published_policy(&routes, &Tenancy::credential());
    assert_eq!(policy["otherwise"]["protected"], false);
    assert_eq!(policy["routes"][0]["path"], pattern);
    let document = openapi_fragment(&routes, &Tenancy::credential());
    let operation = document["paths"][pattern]["post"].clone();
    (document, operation)
}

fn parameter<'a>(operation: &'a Value, name: &str) -> Option<&'a Value> {
    operation["parameters"].as_array().unwrap().iter().find(|known| known["name"] == name)
}

#[test]
fn each_route_is_published_and_described_for_openapi() {
    let (document, operation) = described("/payments/{id}", Protection::default());
    assert!(document["info"]["title"].is_string());
    let key = parameter(&operation, "idempotency-key").unwrap();
    assert_eq!((&key["in"], &key["required"]), (&"header".into(), &true.into()));
    let id = parameter(&operation, "id").unwrap();
    assert_eq!((&id["in"], &id["required"]), (&"path".into(), &true.into()));
    let responses = operation["responses"].as_object().unwrap();
    for status in ["400", "401", "409", "413", "422", "502", "503", "504", "default"] {
        assert!(responses[status]["description"].is_string(), "{status}");
    }
    for status in ["202", "410", "412", "415", "429"] {
        assert!(!responses.contains_key(status), "{status}");
    }
    assert_eq!(parameter(&operation, "repeatability-first-sent"), None);
}

#[test]
fn what_only_some_routes_answer_is_described_for_them() {
    let policy = hapax_core::Policy::default();
    let retention = hapax_core::Retention {
        tombstone: std::time::Duration::from_secs(60),
        ..policy.retention()
    };
    let policy = hapax_core::Policy::new(policy.lease(), retention, policy.recovery());
    let (_, operation) = described(
        "/pay",
        Protection {
            policy: policy.unwrap(),
            dialect: Dialect::Repeatability,
            in_flight: InFlight::Accept,
            body: BodyForm::Multipart,
            limit: Some(RateLimit::per_tenant(1.try_into().unwrap(), 1.try_into().unwrap())),
            ..Protection::default()
        },
    );
    for status in ["202", "410", "412", "415", "429"] {
        assert!(operation["responses"][status]["description"].is_string(), "{status}");
    }
    assert!(parameter(&operation, "repeatability-request-id").is_some());
    assert!(parameter(&operation, "repeatability-first-sent").is_some());
}

#[test]
fn a_route_that_openapi_has_no_words_for_is_listed_beside_its_paths() {
    let (document, operation) = described("/v1/*", Protection::default());
    assert_eq!((operation, &document["paths"]), (Value::Null, &serde_json::json!({})));
    let listed = &document["x-idempotency-routes"][0];
    assert_eq!((&listed["method"], &listed["path"]), (&"POST".into(), &"/v1/*".into()));
    assert!(parameter(&listed["operation"], "idempotency-key").is_some());
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
    let tenancy = Tenancy::credential();
    let layer = hapax_tower::IdempotencyLayer::new(engine, tenancy, routes).unwrap().site(site);
    let app = crate::world::router(&crate::world::service(|| unreachable!())).layer(layer);
    let problem = crate::world::send(&app, post("/pay"), "").await;
    problem.check(400, "key-missing");
    assert_eq!(problem.json()["type"], "https://example.com/docs/errors/key-missing");
}
