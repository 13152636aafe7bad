//! Which keys are taken, and what is said about the others.

use hapax_tower::{Dialect, KeyForm, KeyRule, Protection, SAFE_METHODS};
use http::{HeaderName, Request};

use crate::world::{World, keyed, post};

#[tokio::test(start_paused = true)]
async fn a_request_without_a_key_is_refused_and_nothing_is_claimed() {
    let world = World::new();
    let answer = world.send(post("/pay"), "100").await;
    answer.check(400, "key-missing");
    assert_eq!(world.runs(), 0);
    assert!(world.store.all().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_key_passes_where_keys_are_optional() {
    let world = World::with(Protection { key: KeyRule::Optional, ..Protection::default() });
    let answer = world.send(Request::post("/pay"), "100").await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("idempotency-expires"), None);
    world.send(Request::post("/pay"), "100").await;
    assert_eq!(world.runs(), 2);
    assert!(world.store.all().await.is_empty());
    world.send(keyed("/pay"), "100").await;
    assert!(world.send(keyed("/pay"), "100").await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn the_quoted_and_the_bare_key_are_one_key() {
    let world = World::new();
    let first = world.pay("\"abc\"", "100").await;
    let second = world.pay("abc", "100").await;
    assert!(!first.is_replay() && second.is_replay());
    assert_eq!(first.body, second.body);
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_strict_route_refuses_the_bare_form() {
    let world = World::with(Protection { key_form: KeyForm::Quoted, ..Protection::default() });
    world.pay("abc", "100").await.check(400, "key-not-quoted");
    assert_eq!(world.pay("\"abc\"", "100").await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn malformed_keys_are_refused_by_kind_and_nothing_is_claimed() {
    let world = World::new();
    let long = "k".repeat(256);
    let huge = "k".repeat(8 << 10);
    for (key, code) in [
        ("", "key-empty"),
        ("\"\"", "key-empty"),
        (long.as_str(), "key-too-long"),
        (huge.as_str(), "key-too-long"),
        ("\"a\", \"b\"", "key-malformed"),
        ("\"a\";v=1", "key-malformed"),
        ("\"a", "key-malformed"),
        ("\"a\\n\"", "key-malformed"),
        (":YWI=:", "key-malformed"),
        ("a\tb", "key-malformed"),
    ] {
        world.pay(key, "100").await.check(400, code);
    }
    let raw = http::HeaderValue::from_bytes("schl\u{fc}ssel".as_bytes()).unwrap();
    let request = post("/pay").header("idempotency-key", raw);
    world.send(request, "100").await.check(400, "key-malformed");
    assert_eq!(world.runs(), 0);
    assert!(world.store.all().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_header_lines_are_refused_even_if_they_are_equal() {
    let world = World::new();
    for second in ["k-1", "k-2"] {
        let request = keyed("/pay").header("idempotency-key", second);
        world.send(request, "100").await.check(400, "key-repeated");
    }
    assert_eq!(world.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_opaque_and_keys_that_differ_in_case_are_two() {
    let world = World::new();
    let keys = ["a", "A", "\"'; DROP TABLE keys; --\"", "%00", "../../x", "{{7*7}}", "%s%n"];
    for (at, key) in keys.into_iter().enumerate() {
        assert_eq!(world.pay(key, "100").await.status, 201, "{key}");
        assert_eq!(world.runs(), at + 1);
    }
    assert!(world.pay(&"k".repeat(255), "100").await.status == 201);
}

#[tokio::test(start_paused = true)]
async fn requests_that_change_nothing_pass_and_their_key_is_ignored() {
    let world = World::new();
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        let before = world.runs();
        for _ in 0..2 {
            let request = Request::builder().method(method).uri("/pay");
            let answer = world.send(request.header("idempotency-key", "k-1"), "").await;
            assert_eq!(answer.status, 201);
            assert!(!answer.is_replay());
        }
        assert_eq!(world.runs(), before + 2);
    }
    assert!(world.store.all().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_wish_for_another_protocol_is_ignored_under_a_key() {
    let world = World::new();
    let upgrade = || {
        let settings = keyed("/pay").header("http2-settings", "AAMAAABkAAQAAP__");
        settings.header("upgrade", "h2c").header("connection", "Upgrade, HTTP2-Settings")
    };
    for replayed in [false, true] {
        let answer = world.send(upgrade(), "").await;
        assert_eq!((answer.status, answer.is_replay()), (201, replayed));
    }
    assert_eq!(world.runs(), 1);
    let seen = world.service.last.lock().unwrap().clone().unwrap();
    assert!(!seen.contains_key("upgrade") && !seen.contains_key("http2-settings"), "{seen:?}");
    world.send(keyed("/tunnel").method("CONNECT"), "").await.check(501, "method-refused");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_coded_for_its_way_is_refused_under_a_key() {
    let world = World::new();
    for (coding, status, code) in [
        ("gzip, chunked", 501, "transfer-coding-unknown"),
        ("identity, chunked", 501, "transfer-coding-unknown"),
        ("chunked, chunked", 400, "transfer-coding-repeated"),
    ] {
        let request = keyed("/pay").header("transfer-encoding", coding);
        world.send(request, "zipped").await.check(status, code);
    }
    assert_eq!(world.runs(), 0);
    let request = keyed("/pay").header("transfer-encoding", "chunked");
    assert_eq!(world.send(request, "plain").await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_path_too_long_to_name_an_operation_is_refused() {
    let world = World::new();
    let path = format!("/{}", "p".repeat(2000));
    world.send(keyed(&path), "").await.check(400, "scope-unusable");
    assert_eq!(world.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_route_may_take_its_key_from_another_header() {
    let header = HeaderName::from_static("paypal-request-id");
    let world =
        World::with(Protection { dialect: Dialect::Header(header), ..Protection::default() });
    world.send(keyed("/pay"), "100").await.check(400, "key-missing");
    for replayed in [false, true] {
        let answer = world.send(post("/pay").header("paypal-request-id", "p-1"), "100").await;
        assert_eq!((answer.status, answer.is_replay()), (201, replayed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeatable_request_is_accepted_only_if_it_is_protected() {
    let protection = || Protection { dialect: Dialect::Repeatability, ..Protection::default() };
    let request = |path: &str| {
        post(path)
            .header("repeatability-request-id", "r-1")
            .header("repeatability-first-sent", "Fri, 15 Jan 2027 07:59:00 GMT")
    };
    let world = World::with(protection());
    let working = world.start(request("/slow"), "100");
    world.begun(1).await;
    let busy = world.send(request("/slow"), "100").await;
    busy.check(409, "key-in-flight");
    assert_eq!(busy.header("repeatability-result"), Some("accepted"));
    world.service.go.add_permits(1);
    assert_eq!(working.await.unwrap().status, 201);
    world.store.away(true);
    let away = world.send(request("/pay"), "100").await;
    away.check(503, "store-unavailable");
    assert_eq!(away.header("repeatability-result"), Some("rejected"));
    let store_down = hapax_tower::StoreDown::RunUnprotected;
    let world = World::with(Protection { store_down, ..protection() });
    // The first request makes the store's clock known.
    world.send(request("/pay"), "100").await;
    world.store.away(true);
    let unprotected = world.send(request("/other"), "100").await;
    assert_eq!(unprotected.header("hapax-unprotected"), Some("true"));
    assert_eq!(unprotected.header("repeatability-result"), Some("rejected"));
}

#[tokio::test(start_paused = true)]
async fn a_method_that_promises_to_change_nothing_passes_with_and_without_a_key() {
    let world = World::new();
    for method in SAFE_METHODS {
        for request in [keyed("/pay"), post("/pay"), keyed("/pay")] {
            let answer = world.send(request.method(method), "100").await;
            assert_eq!((answer.status, answer.is_replay()), (201, false), "{method}");
        }
    }
    assert_eq!(world.runs(), 3 * SAFE_METHODS.len());
    assert!(world.store.all().await.is_empty());
    for method in ["POST", "PUT", "PATCH", "DELETE", "MKCOL"] {
        world.send(post("/pay").method(method), "100").await.check(400, "key-missing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_older_than_what_is_remembered_is_refused() {
    let world =
        World::with(Protection { dialect: Dialect::Repeatability, ..Protection::default() });
    let request = |sent: &str| {
        post("/pay")
            .header("repeatability-request-id", "r-1")
            .header("repeatability-first-sent", sent)
    };
    // The store's clock starts on 15 January 2027, and a day is remembered.
    let fresh = "Fri, 15 Jan 2027 07:59:00 GMT";
    let first = world.send(request(fresh), "100").await;
    assert_eq!((first.status, first.header("repeatability-result")), (201, Some("accepted")));
    let again = world.send(request(fresh), "100").await;
    assert_eq!((again.is_replay(), again.header("repeatability-result")), (true, Some("accepted")));
    let other = world.send(request(fresh), "999").await;
    other.check(422, "key-reused");
    assert_eq!(other.header("repeatability-result"), Some("rejected"));
    let old = world.send(request("Wed, 13 Jan 2027 08:00:00 GMT"), "100").await;
    old.check(412, "first-sent-too-old");
    assert_eq!(old.header("repeatability-result"), Some("rejected"));
    for bad in ["yesterday", "Fri, 15 Jan 2029 08:00:00 GMT"] {
        let refused = world.send(request(bad), "100").await;
        refused.check(400, "first-sent-malformed");
        assert_eq!(refused.header("repeatability-result"), Some("rejected"));
    }
    let without = post("/pay").header("repeatability-request-id", "r-2");
    world.send(without, "100").await.check(400, "first-sent-malformed");
    assert_eq!(world.runs(), 1);
}
