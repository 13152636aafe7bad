//! Refusals in the words of APIs whose clients others wrote.

use axum::response::IntoResponse;
use hapax_core::Recovery;
use hapax_tower::{
    Code, ComparedHeaders, Dialect, KeySpelling, Protection, RateLimit, Routes, Tenancy, Treatment,
    openapi_fragment, published_policy,
};
use http::{Method, request::Builder};
use serde_json::{Value, json};

use crate::world::{Answer, World, policy, post};

fn stripe() -> Protection {
    Protection { policy: policy(Recovery::Hold), ..Protection::in_dialect(Dialect::Stripe) }
}

fn keyed(path: &str) -> Builder {
    post(path).header("idempotency-key", "k-1")
}

/// A refusal as Stripe's libraries read it.
#[derive(Debug, PartialEq)]
struct StripeError<'a> {
    status: u16,
    class: &'a str,
    code: &'a str,
    should_retry: &'a str,
}

fn check_stripe(answer: &Answer, expected: &StripeError<'_>) {
    let document = answer.json();
    let error = &document["error"];
    let found = StripeError {
        status: answer.status,
        class: error["type"].as_str().unwrap(),
        code: error["code"].as_str().unwrap(),
        should_retry: answer.header("stripe-should-retry").unwrap(),
    };
    assert_eq!(found, *expected, "{document}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(!error["message"].as_str().unwrap().is_empty());
    // What ours say beside it.
    let refusal = answer.header("hapax-refusal").unwrap();
    assert!(error["doc_url"].as_str().unwrap().ends_with(refusal), "{document}");
    assert_eq!(answer.header("hapax-dialect"), Some("stripe"));
    assert!(answer.header("link").unwrap().contains(refusal));
}

const MISSING: StripeError<'static> = StripeError {
    status: 400,
    class: "invalid_request_error",
    code: "key_missing",
    should_retry: "false",
};
const REUSED: StripeError<'static> = StripeError {
    status: 400,
    class: "idempotency_error",
    code: "key_reused",
    should_retry: "false",
};
const IN_USE: StripeError<'static> = StripeError {
    status: 409,
    class: "idempotency_error",
    code: "idempotency_key_in_use",
    should_retry: "true",
};
const IN_DOUBT: StripeError<'static> = StripeError {
    status: 409,
    class: "api_error",
    code: "outcome_in_doubt",
    should_retry: "false",
};

#[tokio::test(start_paused = true)]
async fn refusals_are_errors_of_stripe() {
    let world = World::with(stripe());
    check_stripe(&world.send(post("/pay"), "100").await, &MISSING);
    let unknown = http::Request::post("/pay").header("idempotency-key", "k-1");
    let unknown = world.send(unknown, "100").await;
    let expected = StripeError { status: 401, code: "credential_missing", ..MISSING };
    check_stripe(&unknown, &expected);
    assert_eq!(unknown.header("www-authenticate"), Some("Bearer"));
    assert_eq!(world.send(keyed("/pay"), "100").await.status, 201);
    let reused = world.send(keyed("/pay"), "999").await;
    check_stripe(&reused, &REUSED);
    let message = reused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with("What differs: body."), "{message}");
    let working = world.start(keyed("/slow"), "100");
    world.begun(2).await;
    let busy = world.send(keyed("/slow"), "100").await;
    check_stripe(&busy, &IN_USE);
    assert!(busy.header("retry-after").is_some());
    assert!(busy.header("request-id").unwrap().starts_with("req_"));
    world.service.go.add_permits(1);
    assert_eq!(working.await.unwrap().status, 201);
    let unclear = world.send(keyed("/pay/../pay"), "100").await;
    check_stripe(&unclear, &StripeError { code: "target_unclear", ..MISSING });
    world.store.away(true);
    let away = world.send(post("/pay").header("idempotency-key", "k-2"), "100").await;
    let expected =
        StripeError { status: 503, code: "store_unavailable", should_retry: "true", ..IN_DOUBT };
    check_stripe(&away, &expected);
    assert_eq!(world.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_to_ask_stripe_again_for_what_is_in_doubt() {
    let world = World::with(stripe());
    let overdue = world.send(keyed("/slow"), "100").await;
    let expected = StripeError { status: 504, code: "execution_timed_out", ..IN_DOUBT };
    check_stripe(&overdue, &expected);
    check_stripe(&world.send(keyed("/slow"), "100").await, &IN_DOUBT);
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn more_than_the_share_of_a_caller_is_stripes_rate_limit() {
    let limit = RateLimit::per_tenant(1.try_into().unwrap(), 1.try_into().unwrap());
    let world = World::with(Protection { limit: Some(limit), ..stripe() });
    assert_eq!(world.send(keyed("/pay"), "100").await.status, 201);
    let limited = world.send(post("/pay").header("idempotency-key", "k-2"), "100").await;
    let expected = StripeError { status: 429, code: "rate_limit", should_retry: "true", ..MISSING };
    check_stripe(&limited, &expected);
}

#[tokio::test(start_paused = true)]
async fn stripes_replays_repeat_the_key_and_stored_errors_are_not_asked_for_again() {
    let world = World::with(stripe());
    for replayed in [false, true] {
        let answer = world.send(keyed("/pay"), "100").await;
        assert_eq!((answer.status, answer.is_replay()), (201, replayed));
        assert_eq!(answer.header("idempotency-key"), Some("k-1"));
        assert_eq!(answer.header("stripe-should-retry"), None);
    }
    for path in ["/402", "/500"] {
        for replayed in [false, true] {
            let answer = world.send(keyed(path), "100").await;
            assert_eq!(answer.is_replay(), replayed, "{path}");
            assert_eq!(answer.header("stripe-should-retry"), Some("false"), "{path}");
        }
    }
    // What frees the key may be asked for again, as its own answer says.
    assert_eq!(world.send(keyed("/401"), "100").await.header("stripe-should-retry"), None);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_that_stripe_says_will_pass_is_not_kept() {
    let conflict = || (http::StatusCode::CONFLICT, [("stripe-should-retry", "true")]);
    let world = World::build(stripe(), Tenancy::credential(), move || conflict().into_response());
    for runs in [1, 2] {
        let answer = world.send(keyed("/made"), "100").await;
        assert_eq!((answer.status, answer.is_replay(), world.runs()), (409, false, runs));
        assert_eq!(answer.header("stripe-should-retry"), Some("true"));
    }
}

#[tokio::test(start_paused = true)]
async fn stripe_takes_any_text_for_a_key_and_the_service_sees_it_as_it_is() {
    let world = World::with(stripe());
    for (runs, key) in ["a;b,\"c\" \\", "\"k-1\"", "k-1", ":YWI=:"].iter().enumerate() {
        for replayed in [false, true] {
            let answer = world.send(post("/pay").header("idempotency-key", *key), "100").await;
            assert_eq!((answer.status, answer.is_replay()), (201, replayed), "{key}");
            assert_eq!(answer.header("idempotency-key"), Some(*key));
        }
        assert_eq!(world.runs(), runs + 1, "{key}");
        let seen = world.service.last.lock().unwrap().clone().unwrap();
        assert_eq!(seen["idempotency-key"].to_str().unwrap(), *key);
    }
    let long = "k".repeat(256);
    let refused = world.send(post("/pay").header("idempotency-key", &long), "100").await;
    check_stripe(&refused, &StripeError { code: "key_too_long", ..MISSING });
    let quoting = Protection { key_spelling: KeySpelling::Quoted, ..stripe() };
    let world = World::with(quoting);
    world.send(post("/pay").header("idempotency-key", "a\"b"), "100").await;
    let seen = world.service.last.lock().unwrap().clone().unwrap();
    assert_eq!(seen["idempotency-key"].to_str().unwrap(), "\"a\\\"b\"");
}

#[tokio::test(start_paused = true)]
async fn accounts_of_stripe_never_hear_each_other() {
    // Whatever else is compared.
    let compared_headers = ComparedHeaders::Named(Vec::new());
    let world = World::with(Protection { compared_headers, ..stripe() });
    let of = |account: &str| keyed("/pay").header("stripe-account", account);
    let within = |context: &str| keyed("/pay").header("stripe-context", context);
    let requests: [&dyn Fn() -> Builder; 5] =
        [&|| keyed("/pay"), &|| of("acct_1"), &|| of("acct_2"), &|| within("acct_1"), &|| {
            of("acct_1").header("stripe-context", "acct_1/acct_3")
        }];
    for replayed in [false, true] {
        for (at, request) in requests.iter().enumerate() {
            let answer = world.send(request(), "100").await;
            assert_eq!((answer.status, answer.is_replay()), (201, replayed), "{at}");
            assert_eq!(answer.header("x-run"), Some((at + 1).to_string().as_str()));
        }
    }
    let unclear = StripeError { code: "target_unclear", ..MISSING };
    for account in ["acct_1 acct_2", "@acct_1", "acct_1,acct_2"] {
        check_stripe(&world.send(of(account), "100").await, &unclear);
    }
    let twice = of("acct_1").header("stripe-account", "acct_2");
    check_stripe(&world.send(twice, "100").await, &unclear);
    let taken_away = of("acct_1").header("connection", "stripe-account");
    check_stripe(&world.send(taken_away, "100").await, &unclear);
    assert_eq!(world.runs(), requests.len());
}

#[tokio::test(start_paused = true)]
async fn another_version_of_stripe_under_a_key_is_another_request() {
    let world = World::with(stripe());
    let of = |version: &str| keyed("/pay").header("stripe-version", version);
    assert_eq!(world.send(of("2025-01-01"), "100").await.status, 201);
    check_stripe(&world.send(of("2026-01-01"), "100").await, &REUSED);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_in_front_understands_refusals_in_any_dialect() {
    for dialect in [Dialect::Stripe, Dialect::Paypal, Dialect::Adyen] {
        let key_header = dialect.key_header().clone();
        let inner = World::with(Protection::in_dialect(dialect));
        let request = || post("/slow").header(&key_header, "k-1");
        let working = inner.start(request(), "100");
        inner.begun(1).await;
        let Answer { status, headers, body } = inner.send(request(), "100").await;
        assert_eq!(status, 409);
        let answer = move || (http::StatusCode::CONFLICT, headers.clone(), body.clone());
        let outer = World::making(move || answer().into_response());
        for runs in [1, 2] {
            let told = outer.send(keyed("/made"), "100").await;
            assert_eq!((told.status, told.is_replay(), outer.runs()), (409, false, runs));
            assert_eq!(told.header("hapax-refusal"), Some("key-in-flight"));
        }
        inner.service.go.add_permits(1);
        working.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_of_a_hapax_further_in_are_told_in_the_dialect_of_the_route() {
    let refused = || {
        let site = hapax_tower::Site::default();
        Code::KeyInFlight.answer("Ask again later.", &site).map(axum::body::Body::new)
    };
    let world = World::build(stripe(), Tenancy::credential(), refused);
    let answer = world.send(keyed("/made"), "100").await;
    // No time was told after which it may be asked for again.
    check_stripe(&answer, &StripeError { should_retry: "false", ..IN_USE });
}

/// The members of an object, with the kinds of their values.
fn shape(document: &Value) -> Value {
    match document {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), shape(value))).collect()
        }
        Value::Array(items) => items.iter().take(1).map(shape).collect(),
        Value::String(_) => "text".into(),
        Value::Number(_) => "number".into(),
        other => other.clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_have_the_shape_of_paypals() {
    // As PayPal publishes the answer to a second request while the first is at work.
    let published = json!({
        "name": "RESOURCE_CONFLICT",
        "message": "The server has detected a conflict while processing this request.",
        "debug_id": "90957fca61718",
        "details": [{
            "issue": "PREVIOUS_REQUEST_IN_PROGRESS",
            "description": "A previous request on this resource is currently in progress.",
        }],
        "links": [{ "href": "https://developer.paypal.com/docs/api/", "rel": "information_link" }],
    });
    let world = World::with(Protection::in_dialect(Dialect::Paypal));
    let request = |path: &str| post(path).header("paypal-request-id", "p;1");
    let working = world.start(request("/slow"), "100");
    world.begun(1).await;
    let busy = world.send(request("/slow"), "100").await;
    let document = busy.json();
    assert_eq!((busy.status, shape(&document)), (409, shape(&published)));
    assert_eq!(document["name"], published["name"]);
    assert_eq!(document["details"][0]["issue"], published["details"][0]["issue"]);
    assert_eq!(document["debug_id"].as_str().unwrap().len(), 32);
    assert_eq!(busy.header("content-type"), Some("application/json"));
    world.service.go.add_permits(1);
    assert_eq!(working.await.unwrap().status, 201);
    let check = |answer: &Answer, status: u16, name: &str, issue: &str| {
        let document = answer.json();
        let found = (answer.status, &document["name"], &document["details"][0]["issue"]);
        assert_eq!(found, (status, &name.into(), &issue.into()));
    };
    let missing = world.send(post("/pay"), "100").await;
    check(&missing, 400, "INVALID_REQUEST", "PAYPAL_REQUEST_ID_REQUIRED");
    let reused = world.send(request("/slow"), "999").await;
    check(&reused, 422, "UNPROCESSABLE_ENTITY", "KEY_REUSED");
    let unknown = http::Request::post("/pay").header("paypal-request-id", "p;1");
    let unknown = world.send(unknown, "100").await;
    check(&unknown, 401, "AUTHENTICATION_FAILURE", "CREDENTIAL_MISSING");
    let for_another = request("/slow").header("paypal-auth-assertion", "another merchant");
    check(&world.send(for_another, "100").await, 422, "UNPROCESSABLE_ENTITY", "KEY_REUSED");
    let replay = world.send(request("/slow"), "100").await;
    assert_eq!((replay.is_replay(), replay.header("idempotency-key")), (true, None));
}

#[tokio::test(start_paused = true)]
async fn refusals_have_the_shape_of_adyens() {
    // As Adyen publishes the answer to a second request while the first is at work.
    let published = json!({
        "status": 409,
        "errorCode": "704",
        "message": "request already processed or in progress",
        "errorType": "validation",
    });
    let world = World::with(Protection::in_dialect(Dialect::Adyen));
    let working = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    let busy = world.send(keyed("/slow"), "100").await;
    let document = busy.json();
    assert_eq!((busy.status, shape(&document)), (409, shape(&published)));
    for member in ["status", "errorCode", "errorType"] {
        assert_eq!(document[member], published[member]);
    }
    assert_eq!(busy.header("transient-error"), Some("true"));
    assert_eq!(busy.header("idempotency-key"), Some("k-1"));
    world.service.go.add_permits(1);
    assert_eq!(working.await.unwrap().status, 201);
    let reused = world.send(keyed("/slow"), "999").await;
    let document = reused.json();
    assert_eq!((reused.status, &document["errorCode"]), (422, &json!("key-reused")));
    assert_eq!(reused.header("transient-error"), Some("false"));
    let unknown = http::Request::post("/pay").header("idempotency-key", "k-1");
    let unknown = world.send(unknown, "100").await;
    assert_eq!((unknown.status, &unknown.json()["errorType"]), (401, &json!("security")));
}

#[test]
fn what_is_published_of_a_route_is_in_its_dialect() {
    let treatment = Treatment::Protect(Protection::in_dialect(Dialect::Stripe));
    let routes = Routes::new(Treatment::PassThrough).unwrap();
    let routes = routes.route(Method::POST, "/v1/charges", treatment).unwrap();
    let policy = published_policy(&routes, &Tenancy::credential());
    let route = &policy["routes"][0];
    assert_eq!((&route["dialect"], &route["results"]), (&json!("stripe"), &json!("stripe")));
    assert_eq!(route["key_form"], "as it is");
    let document = openapi_fragment(&routes, &Tenancy::credential());
    let responses = &document["paths"]["/v1/charges"]["post"]["responses"];
    assert!(responses["400"]["description"].as_str().unwrap().contains("key-reused"));
    let content = &responses["409"]["content"];
    assert!(content["application/json"]["schema"]["properties"]["error"].is_object(), "{content}");
    assert_eq!((&responses["422"], &responses["413"]), (&Value::Null, &Value::Null));
}
