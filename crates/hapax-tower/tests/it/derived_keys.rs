//! Keys for clients that send none: made of values, or of all that makes two requests the same.

use std::{io::Write, time::Duration};

use axum::{Router, response::IntoResponse};
use flate2::{Compression, write::GzEncoder};
use hapax_core::Recovery;
use hapax_tower::{
    BodyForm, DerivedKey, Dialect, Handled, IdempotencyLayer, InvalidDerivedKey, InvalidRoute,
    KeyPart, KeyRule, KeySpelling, Protection, Routes, Scoping, Tenancy, Treatment, Verdict,
    published_policy,
};
use http::{HeaderName, HeaderValue, Method, request::Builder};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::advance;
use tower::ServiceExt;

use crate::world::{Answer, World, keyed, policy, post, router, send};

/// A key that is made of these values, where none is sent.
fn made_of(parts: &[&str]) -> Protection {
    let parts = parts.iter().map(|part| part.parse::<KeyPart>().unwrap());
    let derived_key = Some(DerivedKey::Parts(parts.collect()));
    Protection { derived_key, ..Protection::default() }
}

fn optional(protection: Protection) -> Protection {
    Protection { key: KeyRule::Optional, ..protection }
}

fn by_fingerprint(within: u64) -> Protection {
    let within = Duration::from_secs(within);
    let derived_key = Some(DerivedKey::Fingerprint { within });
    Protection { derived_key, ..Protection::default() }
}

impl World {
    /// The key that the service was sent last.
    fn key_sent_on(&self) -> String {
        let headers = self.service.last.lock().unwrap().clone().unwrap();
        let mut lines = headers.get_all("idempotency-key").iter();
        let key = lines.next().unwrap().to_str().unwrap().to_owned();
        assert_eq!(lines.next(), None);
        key
    }

    async fn order(&self, body: impl AsRef<[u8]>) -> Answer {
        self.send(post("/pay").header("content-type", "application/json"), body).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_value_is_the_same_operation_and_the_service_is_told_its_key() {
    let world = World::with(made_of(&["body /order/id"]));
    let first = world.order(r#"{"order": {"id": "a 17"}, "cents": 100}"#).await;
    assert_eq!((first.status, first.is_replay()), (201, false));
    assert_eq!(world.key_sent_on(), "\"body/order/id=a%2017\"");
    let again = world.order(r#"{"cents":1e2,"order":{"id":"a\u002017"}}"#).await;
    assert!(again.is_replay() && again.body == first.body);
    let other = world.order(r#"{"order": {"id": "a 17"}, "cents": 999}"#).await;
    other.check(422, "key-reused");
    assert_eq!(world.order(r#"{"order": {"id": "a 18"}, "cents": 100}"#).await.status, 201);
    assert_eq!(world.runs(), 2);
    let scopes = world.store.all().await;
    let scopes: Vec<_> = scopes.iter().map(|found| found.operation.scope().as_str()).collect();
    assert_eq!(scopes, ["POST /pay (derived key)"; 2]);
}

#[tokio::test(start_paused = true)]
async fn numbers_are_compared_as_numbers_and_are_never_texts() {
    let world = World::with(made_of(&["body /id"]));
    for (id, key, is_new) in [
        ("1", "body/id:=1", true),
        ("1.0", "body/id:=1", false),
        ("1e0", "body/id:=1", false),
        ("\"1\"", "body/id=1", true),
        ("\"1.0\"", "body/id=1.0", true),
        ("1200", "body/id:=1200", true),
        ("1.5", "body/id:=1.5", true),
        ("0", "body/id:=0", true),
        ("-0.0", "body/id:=0", false),
        ("9007199254740992", "body/id:=9007199254740992", true),
        ("9007199254740993", "body/id:=9007199254740993", true),
        ("\":=1\"", "body/id=%3A%3D1", true),
        ("\"null\"", "body/id=null", true),
        ("\"ü\"", "body/id=%C3%BC", true),
    ] {
        let answer = world.order(format!("{{\"id\": {id}}}")).await;
        assert_eq!((answer.status, answer.is_replay()), (201, !is_new), "{id}");
        if is_new {
            assert_eq!(world.key_sent_on(), format!("\"{key}\""), "{id}");
        }
    }
}

/// What no key can be made of, where it is made of `header X-Shop` and `body /order_id`.
fn bad_inputs() -> Vec<(&'static str, Builder, Vec<u8>)> {
    let shop = || post("/pay").header("x-shop", "north");
    let mut cases: Vec<(_, _, Vec<u8>)> = [
        ("no body", ""),
        ("not JSON", "order_id=17"),
        ("half of it", r#"{"order_id": 17"#),
        ("not UTF-8", "{\"order_id\": \"\u{1}\"}"),
        ("nothing there", r#"{"order": 17}"#),
        ("further out", r#"[{"order_id": 17}]"#),
        ("named twice", r#"{"order_id": 17, "order_id": 17}"#),
        ("another member named twice", r#"{"order_id": 17, "a": 1, "a": 2}"#),
        ("null", r#"{"order_id": null}"#),
        ("true", r#"{"order_id": true}"#),
        ("a list", r#"{"order_id": [17]}"#),
        ("an object", r#"{"order_id": {"id": 17}}"#),
        ("an empty text", r#"{"order_id": ""}"#),
        ("spaces", r#"{"order_id": " \t "}"#),
        ("beyond doubles", r#"{"order_id": 1e999}"#),
        ("two documents", r#"{"order_id": 17}{"order_id": 18}"#),
    ]
    .map(|(name, body)| (name, shop(), body.as_bytes().to_vec()))
    .into();
    let deep = format!("{}17{}", "[".repeat(70), "]".repeat(70));
    let deep = format!(r#"{{"order_id": 17, "deep": {deep}}}"#);
    cases.push(("too deep", shop(), deep.into_bytes()));
    let good = br#"{"order_id": 17}"#.to_vec();
    cases.push(("no header", post("/pay"), good.clone()));
    cases.push(("an empty header", post("/pay").header("x-shop", " "), good.clone()));
    cases.push(("a repeated header", shop().header("x-shop", "north"), good.clone()));
    cases.push(("another coding", shop().header("content-encoding", "br"), good.clone()));
    cases.push(("no gzip", shop().header("content-encoding", "gzip"), good));
    cases
}

#[tokio::test(start_paused = true)]
async fn what_no_key_can_be_made_of_is_refused_and_nothing_is_claimed() {
    let world = World::with(made_of(&["header X-Shop", "body /order_id"]));
    for (name, request, body) in bad_inputs() {
        let answer = world.send(request, body).await;
        assert_eq!((answer.status, answer.problem().as_str()), (400, "key-underivable"), "{name}");
    }
    assert_eq!(world.runs(), 0);
    assert!(world.store.all().await.is_empty());
    let good = || post("/pay").header("x-shop", "north");
    assert_eq!(world.send(good(), r#"{"order_id": 17}"#).await.status, 201);
    assert!(world.send(good(), r#"{"order_id": 17}"#).await.is_replay());
    assert_eq!(world.key_sent_on(), "\"header/x-shop=north&body/order_id:=17\"");
}

#[tokio::test(start_paused = true)]
async fn what_no_key_can_be_made_of_passes_as_it_is_where_the_route_says_so() {
    let world = World::with(optional(made_of(&["header X-Shop", "body /order_id"])));
    for (name, request, body) in bad_inputs() {
        for _ in 0..2 {
            let (before, length) = (world.runs(), body.len());
            let (request, body) = (copy(&request), axum::body::Body::from(body.clone()));
            let answer = world.app.clone().oneshot(request.body(body).unwrap()).await.unwrap();
            let handled = answer.extensions().get::<Handled>().unwrap().verdict;
            assert_eq!(handled, Verdict::PassedKeyless, "{name}");
            let text = answer.into_body().collect().await.unwrap().to_bytes();
            let expected = format!("run {} of {length} bytes", before + 1);
            assert_eq!(text, expected, "{name}");
            let seen = world.service.last.lock().unwrap().clone().unwrap();
            assert!(!seen.contains_key("idempotency-key"), "{name}");
        }
    }
    assert!(world.store.all().await.is_empty());
}

fn copy(request: &Builder) -> Builder {
    let mut copied = http::Request::post("/pay");
    copied.headers_mut().unwrap().clone_from(request.headers_ref().unwrap());
    copied
}

#[tokio::test(start_paused = true)]
async fn a_body_too_large_to_look_into_passes_whole_or_is_refused() {
    let body = vec![b'1'; 3000];
    let protection = Protection { request_bytes_max: 1000, ..made_of(&["body /id"]) };
    let refusing = World::with(protection.clone());
    refusing.order(&body).await.check(413, "body-too-large");
    let passing = World::with(optional(protection));
    for announced in [true, false] {
        let pieces = body.chunks(700).map(|piece| {
            Ok::<_, std::convert::Infallible>(http_body::Frame::data(
                bytes::Bytes::copy_from_slice(piece),
            ))
        });
        let pieces: Vec<_> = pieces.collect();
        let streamed = http_body_util::StreamBody::new(futures_util::stream::iter(pieces));
        let request =
            if announced { post("/pay").header("content-length", "3000") } else { post("/pay") };
        let request = request.body(axum::body::Body::new(streamed)).unwrap();
        let answer = passing.app.clone().oneshot(request).await.unwrap();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(text.ends_with(b"of 3000 bytes"), "{text:?}");
    }
    assert!(passing.store.all().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_sent_counts_for_more_and_never_meets_one_that_was_made() {
    let world = World::with(made_of(&["body /id"]));
    let body = r#"{"id": "17"}"#;
    world.order(body).await;
    let made = world.key_sent_on();
    for sent in [made.as_str(), "body/id=17", "17"] {
        let before = world.runs();
        let answer = world.send(post("/pay").header("idempotency-key", sent), body).await;
        let is_known = sent == "body/id=17";
        assert_eq!(answer.is_replay(), is_known, "{sent}: only the same key sent before is known");
        assert_eq!(world.runs(), before + usize::from(!is_known));
    }
    // A key that is sent and no good is refused, whatever could be made of the rest.
    let request = post("/pay").header("idempotency-key", "");
    world.send(request, body).await.check(400, "key-empty");
    let request = keyed("/pay").header("idempotency-key", "k-2");
    world.send(request, body).await.check(400, "key-repeated");
    // What has no value is no matter where a key is sent.
    assert_eq!(world.send(keyed("/pay"), "no JSON").await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_scope_of_a_sent_key_is_never_one_of_derived_keys() {
    let named = Scoping::from_fn(|_| hapax_core::Scope::parse("orders (derived key)").ok());
    let world = World::with(Protection { scope: named, ..Protection::default() });
    world.send(keyed("/pay"), "").await.check(400, "scope-unusable");
}

/// Another layer on the store of this world.
fn beside(world: &World, protection: Protection) -> Router {
    let routes = Routes::new(Treatment::Protect(protection)).unwrap();
    let layer = IdempotencyLayer::new(world.engine.clone(), Tenancy::credential(), routes);
    router(&world.service).layer(layer.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_route_that_looks_elsewhere_begins_anew() {
    let body = r#"{"id": "17", "number": "17"}"#;
    let world = World::with(made_of(&["body /id"]));
    world.order(body).await;
    for parts in [&["body /number"][..], &["header X-Id"], &["body /id", "body /number"]] {
        let elsewhere = beside(&world, made_of(parts));
        let request = || post("/pay").header("x-id", "17");
        assert!(!send(&elsewhere, request(), body).await.is_replay(), "{parts:?}");
        assert!(send(&elsewhere, request(), body).await.is_replay(), "{parts:?}");
    }
    let same = beside(&world, made_of(&["body /id"]));
    let request = post("/pay").header("content-type", "application/json");
    assert!(send(&same, request, body).await.is_replay());
}

#[test]
fn an_operation_with_a_derived_key_is_shown_by_its_route() {
    let routes = Routes::new(Treatment::PassThrough).unwrap();
    let treatment = Treatment::Protect(made_of(&["body /id"]));
    let routes = routes.route(Method::POST, "/orders/{shop}", treatment).unwrap();
    for scope in ["POST /orders/7", "POST /orders/7 (derived key)"] {
        let scope = hapax_core::Scope::parse(scope).unwrap();
        assert_eq!(routes.label_of(&scope), Some("POST /orders/{shop}"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_has_the_key_that_was_made_the_first_time() {
    let answers = std::sync::Mutex::new(vec![201, 500]);
    let protection = Protection { policy: policy(Recovery::Resend), ..made_of(&["body /id"]) };
    let world = World::build(protection, Tenancy::credential(), move || {
        let status = answers.lock().unwrap().pop().unwrap_or(201);
        http::StatusCode::from_u16(status).unwrap().into_response()
    });
    let answer = world.send(post("/made"), r#"{"id": "17"}"#).await;
    assert_eq!((answer.status, world.runs()), (201, 2));
    assert_eq!(world.key_sent_on(), "\"body/id=17\"");
}

#[tokio::test(start_paused = true)]
async fn callers_and_paths_have_derived_keys_of_their_own() {
    let world = World::with(made_of(&["body /id"]));
    let body = r#"{"id": 1}"#;
    let bob = || http::Request::post("/pay").header("authorization", "Bearer bob");
    for request in [post("/pay"), bob(), post("/refund")] {
        assert!(!world.send(request, body).await.is_replay());
    }
    world.send(http::Request::post("/pay"), body).await.check(401, "credential-missing");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_too_long_for_a_key_is_hashed() {
    let world = World::with(made_of(&["header X-Request-Id"]));
    let long = "k".repeat(300);
    let request = |id: &str| post("/pay").header("x-request-id", id);
    world.send(request(&long), "").await;
    let key = world.key_sent_on();
    assert!(key.starts_with("\"sha256:") && key.len() == 2 + 7 + 64, "{key}");
    assert!(world.send(request(&long), "").await.is_replay());
    assert!(!world.send(request(&format!("{long}k")), "").await.is_replay());
    let short = "k".repeat(234);
    world.send(request(&short), "").await;
    assert_eq!(world.key_sent_on(), format!("\"header/x-request-id={short}\""));
}

#[tokio::test(start_paused = true)]
async fn a_header_of_this_connection_alone_makes_no_key() {
    let world = World::with(optional(made_of(&["header X-Request-Id"])));
    for dropped in ["x-request-id", "idempotency-key"] {
        let request = post("/pay").header("x-request-id", "a").header("connection", dropped);
        world.send(request, "").await.check(400, "key-malformed");
    }
    assert_eq!(world.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_within_gzip_and_a_large_one_are_looked_into() {
    let world = World::with(made_of(&["body /id"]));
    let padding = "x".repeat(200 << 10);
    let large = format!(r#"{{"padding": "{padding}", "id": "large"}}"#);
    for replayed in [false, true] {
        assert_eq!(world.order(&large).await.is_replay(), replayed);
    }
    assert_eq!(world.key_sent_on(), "\"body/id=large\"");
    for (time, replayed) in [(1, false), (2, true)] {
        let mut writer = flate2::GzBuilder::new().mtime(time);
        writer = writer.comment("a retry is compressed anew");
        let mut writer: GzEncoder<Vec<u8>> = writer.write(Vec::new(), Compression::fast());
        writer.write_all(br#"{"id": "packed"}"#).unwrap();
        let packed = writer.finish().unwrap();
        let request = post("/pay").header("content-encoding", "gzip");
        let request = request.header("content-type", "application/json");
        assert_eq!(world.send(request, packed).await.is_replay(), replayed);
    }
    assert_eq!(world.key_sent_on(), "\"body/id=packed\"");
}

#[tokio::test(start_paused = true)]
async fn a_derived_key_is_forwarded_in_the_header_and_the_spelling_of_the_route() {
    let header = HeaderName::from_static("x-operation");
    let dialect = Dialect::Header(header);
    let world = World::with(Protection { dialect, ..made_of(&["body /id"]) });
    world.order(r#"{"id": "17"}"#).await;
    let seen = world.service.last.lock().unwrap().clone().unwrap();
    assert_eq!(seen.get("x-operation"), Some(&HeaderValue::from_static("body/id=17")));
    assert!(!seen.contains_key("idempotency-key"));
    let bare = Protection { key_spelling: KeySpelling::Bare, ..made_of(&["body /id"]) };
    let world = World::with(bare);
    world.order(r#"{"id": "17"}"#).await;
    assert_eq!(world.key_sent_on(), "body/id=17");
}

#[tokio::test(start_paused = true)]
async fn equal_requests_are_one_within_their_time_and_two_after_it() {
    let world = World::with(by_fingerprint(30));
    // The store's clock stands at the beginning of a window of 30 s.
    advance(Duration::from_secs(20)).await;
    let first = world.order(r#"{"cents": 100}"#).await;
    assert_eq!((first.status, first.is_replay()), (201, false));
    let key = world.key_sent_on();
    assert!(key.starts_with("\"fingerprint=") && key.ends_with("&within=30000ms\""), "{key}");
    // Beyond the end of the window, and not of the 30 s.
    advance(Duration::from_secs(29)).await;
    assert!(world.order(r#"{ "cents": 1e2 }"#).await.is_replay());
    assert!(!world.order(r#"{"cents": 200}"#).await.is_replay());
    let bob = http::Request::post("/pay").header("authorization", "Bearer bob");
    assert!(!world.send(bob, r#"{"cents": 100}"#).await.is_replay());
    assert_eq!(world.runs(), 3);
    advance(Duration::from_secs(2)).await;
    let later = world.order(r#"{"cents": 100}"#).await;
    assert_eq!((later.status, later.is_replay(), world.runs()), (201, false, 4));
    assert_ne!(world.key_sent_on(), key);
    // That one is now the first.
    advance(Duration::from_secs(25)).await;
    let again = world.order(r#"{"cents": 100}"#).await;
    assert!(again.is_replay() && again.body == later.body);
}

#[tokio::test(start_paused = true)]
async fn equal_requests_at_every_distance_are_one_exactly_if_that_is_within_their_time() {
    for begun in 0..12 {
        for distance in 1..24 {
            let world = World::with(by_fingerprint(10));
            advance(Duration::from_secs(begun)).await;
            world.order("100").await;
            advance(Duration::from_secs(distance)).await;
            let is_one = world.order("100").await.is_replay();
            assert_eq!(is_one, distance < 10, "begun after {begun} s, again after {distance} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_equal_request_hears_that_the_first_is_at_work() {
    let world = World::with(by_fingerprint(30));
    let working = world.start(post("/slow"), "100");
    world.begun(1).await;
    world.send(post("/slow"), "100").await.check(409, "key-in-flight");
    world.service.go.add_permits(1);
    let first = working.await.unwrap();
    let again = world.send(post("/slow"), "100").await;
    assert!(again.is_replay() && again.body == first.body);
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_store_nothing_of_a_time_is_known_and_nothing_runs() {
    let world = World::with(by_fingerprint(30));
    world.order("100").await;
    world.store.away(true);
    world.order("200").await.check(503, "store-unavailable");
    assert_eq!(world.runs(), 1);
}

#[test]
fn a_rule_that_contradicts_itself_or_its_route_is_refused() {
    let refused = |protection: Protection| match Routes::new(Treatment::Protect(protection)) {
        Err(InvalidRoute::DerivedKey(error)) => error,
        other => panic!("{other:?}"),
    };
    let secrets = vec![HeaderName::from_static("x-badge")];
    let repeatable = Protection { dialect: Dialect::Repeatability, ..made_of(&["body /id"]) };
    let parts = |count| Some(DerivedKey::Parts(vec!["body /a".parse().unwrap(); count]));
    let of = |count| Protection { derived_key: parts(count), ..Protection::default() };
    assert_eq!(refused(repeatable), InvalidDerivedKey::Dialect);
    assert_eq!(refused(of(0)), InvalidDerivedKey::Count);
    assert_eq!(refused(of(9)), InvalidDerivedKey::Count);
    assert_eq!(refused(of(2)), InvalidDerivedKey::Twice { part: "body /a".to_owned() });
    for name in ["authorization", "x-api-key", "cookie", "x-badge"] {
        let protection = made_of(&[&format!("header {name}")]);
        let error = refused(Protection { secret_headers: secrets.clone(), ..protection });
        assert!(matches!(error, InvalidDerivedKey::Secret { .. }), "{name}: {error}");
    }
    let error = refused(made_of(&["header idempotency-key"]));
    assert!(matches!(error, InvalidDerivedKey::KeyHeader { .. }), "{error}");
    for within in [0, 25 * 3600] {
        let error = refused(by_fingerprint(within));
        assert!(matches!(error, InvalidDerivedKey::Window { .. }), "{error}");
    }
    for text in ["", "order_id", "body", "body order_id", "header", "header a b", "cookie a"] {
        assert!(text.parse::<KeyPart>().is_err(), "{text}");
    }
}

#[test]
fn the_published_policy_says_where_keys_come_from() {
    let published = |protection: Protection| -> Value {
        let routes = Routes::new(Treatment::PassThrough).unwrap();
        let routes = routes.route(Method::POST, "/pay", Treatment::Protect(protection)).unwrap();
        published_policy(&routes, &Tenancy::credential())["routes"][0].clone()
    };
    let said = published(made_of(&["header X-Shop", "body /order_id"]));
    assert_eq!((&said["key"], &said["header"]), (&json!("derived"), &json!("idempotency-key")));
    let from = json!(["header x-shop", "body /order_id"]);
    assert_eq!(said["derived_key"], json!({ "from": from, "if_missing": "refuse" }));
    let said = published(optional(made_of(&["body /id"])));
    assert_eq!(said["derived_key"], json!({ "from": ["body /id"], "if_missing": "pass" }));
    let said = &published(by_fingerprint(30))["derived_key"];
    assert_eq!((&said["from"], &said["within_seconds"]), (&json!(["fingerprint"]), &json!(30.0)));
    assert!(said["promise"].as_str().unwrap().starts_with("best effort"), "{said}");
    let said = published(Protection::default());
    assert_eq!((&said["key"], &said["derived_key"]), (&json!("required"), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_form_that_cannot_be_compared_is_refused_whatever_its_time() {
    let body = BodyForm::Json { ignored: Vec::new() };
    let world = World::with(Protection { body, ..by_fingerprint(30) });
    world.order("no JSON").await.check(400, "body-not-canonical");
    assert_eq!(world.runs(), 0);
}
