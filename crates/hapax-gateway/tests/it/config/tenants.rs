//! A tenant is never taken from the client's word alone.

use http::{Request, StatusCode};

use super::{
    routes,
    world::{World, keyed},
};

const BY_HEADER: &str = "[tenant]\nfrom = \"header\"\nheader = \"X-Account\"\n\
                         trusted_proxies = [\"10.0.0.0/8\", \"::1\"]";

#[tokio::test]
async fn a_header_names_the_tenant_only_if_a_trusted_proxy_wrote_it() {
    let world = World::new(routes(BY_HEADER));
    let of = |account: &str| keyed().header("x-account", account);
    assert_eq!(world.send("10.1.2.3", of("a")).await, (StatusCode::OK, false));
    assert_eq!(world.send("10.9.9.9", of("a")).await, (StatusCode::OK, true));
    assert_eq!(world.send("10.9.9.9", of("b")).await, (StatusCode::OK, false));
    assert_eq!(world.send("[::1]", of("a")).await, (StatusCode::OK, true));
    assert_eq!(world.send("[::ffff:10.1.1.1]", of("a")).await, (StatusCode::OK, true));
    for stranger in ["11.0.0.1", "127.0.0.1", "[fe80::1]"] {
        assert_eq!(world.send(stranger, of("a")).await, (StatusCode::UNAUTHORIZED, false));
    }
}

#[tokio::test]
async fn a_header_that_is_missing_or_repeated_names_nobody() {
    let world = World::new(routes(BY_HEADER));
    let twice = keyed().header("x-account", "a").header("x-account", "b");
    for request in [keyed(), twice, keyed().header("x-account", "")] {
        assert_eq!(world.send("10.0.0.1", request).await, (StatusCode::UNAUTHORIZED, false));
    }
}

#[tokio::test]
async fn without_a_credential_only_requests_with_a_key_are_refused() {
    let world = World::new(routes(""));
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::UNAUTHORIZED, false));
    assert_eq!(world.send("10.0.0.1", Request::post("/a")).await, (StatusCode::OK, false));
}

#[tokio::test]
async fn a_route_may_find_its_tenant_in_another_way() {
    let world = World::new(routes("[[route]]\nmatch = \"POST /a\"\ntenant = \"single\""));
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::OK, false));
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::OK, true));
    let elsewhere = Request::post("/b").header("idempotency-key", "k-1");
    assert_eq!(world.send("10.0.0.1", elsewhere).await, (StatusCode::UNAUTHORIZED, false));
}
