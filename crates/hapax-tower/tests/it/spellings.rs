//! One spelling, one operation: whatever a client writes, nothing runs beside its route.

use hapax_engine::{Engine, Options};
use hapax_tower::{
    ComparedHeaders, Dialect, Hosts, IdempotencyLayer, KeyRule, KeySpelling, PathReading,
    Protection, Routes, Scoping, Tenancy, Treatment,
};
use http::{HeaderName, Method, Request};

use crate::world::{Answer, Wire, World, keyed, post, router, send, service};

/// Spellings that some server takes for `/pay`, and that are no path a client would write.
const OTHER_SPELLINGS: &[&str] = &[
    "/PAY",
    "/pay/",
    "//pay",
    "/pay//",
    "/pay%2f",
    "/%2Fpay",
    "/pay;x=1",
    "/pay%3Bx=1",
    "/;x/pay",
    "/pay.json",
    "/pay%20",
    "/pay%00",
    "/pay%0a",
    "/pay%3Fx",
    "/%2570ay",
    "/pay%5c",
    "/pay%",
    "/./pay",
    "/x/../pay",
    "/%2e/pay",
    "/x/%2E%2e/pay",
    "/x/..;/pay",
    "/x/..%2fpay",
];

/// A service behind routes, and how often it was begun.
struct Routed {
    app: axum::Router,
    service: std::sync::Arc<crate::world::Service>,
}

impl Routed {
    fn new(routes: Routes) -> Self {
        let engine = Engine::start(Wire::new(), Options::default());
        let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
        let service = service(|| unreachable!());
        Self { app: router(&service).layer(layer), service }
    }

    async fn send(&self, request: http::request::Builder) -> Answer {
        send(&self.app, request, "100").await
    }

    fn runs(&self) -> usize {
        self.service.runs.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn protect() -> Treatment {
    Treatment::Protect(Protection::default())
}

fn paying(otherwise: Treatment) -> Routes {
    Routes::new(otherwise).unwrap().route(Method::POST, "/pay", protect()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn no_spelling_of_a_protected_path_runs_without_its_key() {
    let optional = Protection { key: KeyRule::Optional, ..Protection::default() };
    for otherwise in [Treatment::PassThrough, Treatment::Protect(optional)] {
        let world = Routed::new(paying(otherwise));
        for path in OTHER_SPELLINGS {
            world.send(post(path)).await.check(400, "target-unclear");
            world.send(keyed(path)).await.check(400, "target-unclear");
        }
        world.send(post("/%70a%79")).await.check(400, "key-missing");
        for method in ["post", "Post"] {
            world.send(post("/pay").method(method)).await.check(400, "target-unclear");
        }
        assert_eq!(world.runs(), 0);
        assert_eq!(world.send(post("/other")).await.status, 201);
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_that_asks_to_be_another_method_does_not_get_round_its_route() {
    let routes = paying(Treatment::PassThrough).route(Method::PUT, "/pay/{id}", protect()).unwrap();
    let world = Routed::new(routes);
    for name in ["x-http-method-override", "X-HTTP-Method", "x-method-override"] {
        for method in ["PUT", "put"] {
            world.send(post("/pay/7").header(name, method)).await.check(400, "target-unclear");
        }
    }
    assert_eq!(world.runs(), 0);
    let harmless = post("/other").header("x-http-method-override", "PUT");
    assert_eq!(world.send(harmless).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_path_that_is_encoded_without_need_is_the_same_operation() {
    let world = World::new();
    let first = world.send(keyed("/caf%c3%a9/x"), "100").await;
    let again = world.send(keyed("/%63af%C3%A9/%78"), "100").await;
    assert!(!first.is_replay() && again.is_replay());
    assert_eq!(world.store.all().await[0].operation.scope().as_str(), "POST /caf%C3%A9/x");
}

#[tokio::test(start_paused = true)]
async fn a_key_on_a_path_that_is_read_in_two_ways_is_refused_without_any_route() {
    let world = World::new();
    for path in ["/a%2Fb", "/a//b", "/a;b", "/a/../b", "/a%5Cb", "/a%00", "/a%", "/%252e"] {
        world.send(keyed(path), "100").await.check(400, "target-unclear");
    }
    assert_eq!(world.runs(), 0);
    for path in ["/a/", "/A", "/a.json", "/100%25", "/.well-known/x", "/a@b:c", "/a%40b"] {
        assert_eq!(world.send(keyed(path), "100").await.status, 201, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_that_a_route_spells_out_is_meant() {
    let routes = paying(Treatment::PassThrough);
    let routes = routes.route(Method::POST, "/pay/", Treatment::PassThrough).unwrap();
    let routes = routes.route(Method::POST, "/v1/*", Treatment::PassThrough).unwrap();
    let world = Routed::new(routes);
    assert_eq!(world.send(post("/pay/")).await.status, 201);
    assert_eq!(world.send(post("/v1/a;b/c%2Fd")).await.status, 201);
    world.send(post("/v1/../pay")).await.check(400, "target-unclear");
    world.send(post("/PAY")).await.check(400, "target-unclear");
}

#[tokio::test(start_paused = true)]
async fn a_route_that_passes_is_no_way_round_what_is_protected_otherwise() {
    let routes = Routes::new(protect()).unwrap();
    let routes = routes.route(Method::POST, "/hooks/{name}", Treatment::PassThrough).unwrap();
    let world = Routed::new(routes);
    assert_eq!(world.send(post("/hooks/a")).await.status, 201);
    for path in ["/hooks/..", "/hooks/a%2Fb", "/hooks/..%2fpay"] {
        world.send(post(path)).await.check(400, "target-unclear");
    }
    world.send(post("/hooks/a/b")).await.check(400, "key-missing");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_reads_paths_literally_is_trusted_to() {
    let routes = paying(Treatment::PassThrough).reading(PathReading::Literal);
    let world = Routed::new(routes.route(Method::POST, "/repos/{id}", protect()).unwrap());
    for path in ["/PAY", "/pay/", "//pay", "/pay%2F", "/pay;x=1"] {
        assert_eq!(world.send(post(path)).await.status, 201, "{path}");
    }
    assert_eq!(world.send(keyed("/repos/a%2fb")).await.status, 201);
    assert!(world.send(keyed("/repos/a%2Fb")).await.is_replay());
    world.send(post("/%70ay")).await.check(400, "key-missing");
    world.send(post("/x/../pay")).await.check(400, "target-unclear");
}

#[tokio::test(start_paused = true)]
async fn what_no_route_names_can_be_refused() {
    let routes = paying(Treatment::Refuse);
    let world = Routed::new(routes.route(Method::POST, "/open", Treatment::PassThrough).unwrap());
    world.send(post("/other")).await.check(404, "route-unknown");
    world.send(keyed("/other")).await.check(404, "route-unknown");
    world.send(post("/pay").method("PUT")).await.check(404, "route-unknown");
    assert_eq!(world.runs(), 0);
    assert_eq!(world.send(keyed("/pay")).await.status, 201);
    assert_eq!(world.send(post("/open")).await.status, 201);
    assert_eq!(world.send(post("/other").method("GET")).await.status, 201);
    let policy = world.send(Request::get("/.well-known/idempotency")).await.json();
    assert_eq!(
        (&policy["otherwise"]["refused"], &policy["otherwise"]["protected"]),
        (&true.into(), &false.into())
    );
}

#[tokio::test(start_paused = true)]
async fn the_service_is_told_a_key_in_one_spelling() {
    let own = HeaderName::from_static("x-request-key");
    for (spelling, header, sent, told) in [
        (KeySpelling::OfTheHeader, None, "abc", "\"abc\""),
        (KeySpelling::OfTheHeader, None, "  \"abc\" ", "\"abc\""),
        (KeySpelling::OfTheHeader, None, "\"a\\\"b\\\\\"", "\"a\\\"b\\\\\""),
        (KeySpelling::OfTheHeader, Some(&own), "\"abc\"", "abc"),
        (KeySpelling::Quoted, Some(&own), "abc", "\"abc\""),
        (KeySpelling::Bare, None, "\"abc\"", "abc"),
        (KeySpelling::Bare, None, "abc", "abc"),
        (KeySpelling::Bare, None, "\"a,b\"", "\"a,b\""),
        (KeySpelling::Bare, None, "\"?1\"", "\"?1\""),
    ] {
        let usual = Protection::default();
        let dialect = header.cloned().map_or_else(|| usual.dialect.clone(), Dialect::Header);
        let world = World::with(Protection { key_spelling: spelling, dialect, ..usual });
        let name = header.map_or("idempotency-key", HeaderName::as_str);
        let answer = world.send(post("/pay").header(name, sent), "100").await;
        assert_eq!(answer.status, 201, "{sent}");
        let seen = world.service.last.lock().unwrap().take().unwrap();
        assert_eq!(seen[name].to_str().unwrap(), told, "{spelling:?} {sent}");
        assert_eq!(seen.get_all(name).iter().count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn each_host_has_keys_of_its_own_where_the_service_tells_them_apart() {
    let named = Scoping::Named(hapax_core::Scope::parse("payments").unwrap());
    for scope in [Scoping::MethodAndPath, named] {
        let usual = Protection { scope, ..Protection::default() };
        let world = World::with(Protection { hosts: Hosts::Apart, ..usual.clone() });
        let to = |host: &str| keyed("/pay").header("host", host);
        for host in ["shop-a.example", "shop-b.example", "shop-b.example:8080"] {
            assert!(!world.send(to(host), "100").await.is_replay(), "{host}");
        }
        for host in ["Shop-A.Example", "shop-a.example:80", "shop-a.example:443", "shop-a.example."]
        {
            assert!(world.send(to(host), "100").await.is_replay(), "{host}");
        }
        let by_target = || keyed("http://shop-a.example/pay");
        assert!(world.send(by_target(), "100").await.is_replay());
        assert_eq!(world.runs(), 3);
        let world = World::with(usual);
        world.send(to("shop-a.example"), "100").await;
        assert!(world.send(to("shop-b.example"), "100").await.is_replay());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_cannot_have_a_header_removed_that_tells_operations_apart() {
    let own = HeaderName::from_static("x-account");
    let world = World::with(Protection {
        compared_headers: ComparedHeaders::Named(vec![own]),
        ..Protection::default()
    });
    let request = keyed("/pay").header("x-account", "7").header("connection", "X-Account");
    world.send(request, "100").await.check(400, "target-unclear");
    assert_eq!(world.runs(), 0);
}
