//! What names an operation, and what its transaction is told.

use std::convert::Infallible;

use hapax::{
    Engine, Key, Operation, Options, Salt, Scope, Tenant, Timestamp, memory,
    tower::{Body, Code, IdempotencyLayer, Protection, Routes, Tenancy, Treatment},
};
use http::{Request, Response};
use serde_json::{Value, json};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::check;

#[test]
fn an_operation_has_one_id() {
    let long = "s".repeat(1024);
    let names = [
        ("acme", "POST /payments", "order-17"),
        ("acme", "POST /payments", "order 17"),
        ("acme", "POST /payments", "\"quoted\\\""),
        ("header:acme", "mailer", "m-1"),
        ("a", "b", "c"),
        ("t", long.as_str(), "k"),
    ];
    let cases = names.map(|(tenant, scope, key)| {
        let operation = Operation::new(
            Tenant::parse(tenant).unwrap(),
            Scope::parse(scope).unwrap(),
            Key::parse(key).unwrap(),
        );
        json!({ "tenant": tenant, "scope": scope, "key": key, "operation": operation.id().to_string() })
    });
    check("operations.json", "Tenant, scope and key, and the id of their operation.", &cases);
}

/// A row of `hapax.begin`, and what a client over HTTP hears of it.
#[test]
fn a_decision_is_told_alike() {
    let refusal = |row: Value, code: Code, detail: &str, retry_after: Option<u32>| {
        json!({
            "row": row,
            "answer": {
                "status": code.status().as_u16(), "code": code.code(), "title": code.title(), "detail": detail,
                "retry_after": retry_after,
            },
        })
    };
    let cases = vec![
        json!({ "row": { "decision": "execute", "operation": "00000000-0000-0000-0000-000000000001", "fence": 1 },
                "answer": null }),
        json!({ "row": { "decision": "replay", "status": 201, "headers": { "content-type": "text/plain", "x-a": ["b", "c"] },
                         "body": "paid", "expires_at": "2026-01-02T03:04:05Z" },
                "answer": { "status": 201, "body": "paid", "headers": [
                    ["content-type", "text/plain"], ["x-a", "b"], ["x-a", "c"], ["idempotent-replayed", "true"],
                    ["idempotency-expires", "Fri, 02 Jan 2026 03:04:05 GMT"]] } }),
        refusal(
            json!({ "decision": "replay", "status": 201, "headers": {}, "body": null }),
            Code::ResponseNotRetained,
            "It was answered with 201; the body was not kept.",
            None,
        ),
        refusal(
            json!({ "decision": "busy", "retry_after": 7 }),
            Code::KeyInFlight,
            "The first request with this key is still being worked on. Ask again later.",
            Some(7),
        ),
        refusal(
            json!({ "decision": "mismatch", "differs": ["query", "body"] }),
            Code::KeyReused,
            "Use a new key for a new request.",
            None,
        ),
        refusal(
            json!({ "decision": "in_doubt" }),
            Code::OutcomeInDoubt,
            "An attempt ended without an answer. It is not repeated until somebody has found out whether it happened.",
            None,
        ),
        refusal(
            json!({ "decision": "gone" }),
            Code::KeyGone,
            "The key was used, and its answer is no longer kept.",
            None,
        ),
    ];
    check(
        "decisions.json",
        "A row of hapax.begin, and what a client hears of it over HTTP.",
        &cases,
    );
}

/// What the database refuses with, and what a client over HTTP hears of it.
#[test]
fn an_error_is_told_alike() {
    let again = "Nothing was run. Ask again.";
    let rolled_back = "Nothing of it was kept. Ask again with the same key.";
    let cases = [
        ("40001", Code::TransactionRolledBack, rolled_back, Some(1)),
        ("40P01", Code::TransactionRolledBack, rolled_back, Some(1)),
        ("HX006", Code::StoredResponseCorrupt, "It was not served, and nothing was run.", None),
        ("HX007", Code::StoredByNewerVersion, again, Some(5)),
        ("08006", Code::StoreUnavailable, again, Some(1)),
        ("53300", Code::StoreUnavailable, again, Some(1)),
        ("57P01", Code::StoreUnavailable, again, Some(1)),
        ("57P03", Code::StoreUnavailable, again, Some(1)),
        (
            "lost during COMMIT",
            Code::OutcomeNotRecorded,
            "The request may have been carried out. Ask again with the same key.",
            Some(1),
        ),
    ];
    let cases = cases.map(|(sqlstate, code, detail, retry_after)| {
        json!({
            "sqlstate": sqlstate, "status": code.status().as_u16(), "code": code.code(), "title": code.title(),
            "detail": detail, "retry_after": retry_after,
        })
    });
    let about = "What the database fails with for good, and what a client hears of it over HTTP.";
    check("errors.json", about, &cases);
}

/// What becomes of an answer below 500; from there on nothing is stored, and the key is free.
#[tokio::test]
async fn an_answer_is_kept_alike() {
    let mut cases = Vec::new();
    for status in (200..=206).chain([300, 302, 303, 304, 307]).chain(400..=431).chain([451, 499]) {
        let service = service_fn(move |_: Request<Body>| async move {
            Ok::<_, Infallible>(Response::builder().status(status).body(Body::empty()).unwrap())
        });
        let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
        let engine = Engine::start(store, Options::default());
        let routes = Routes::new(Treatment::Protect(Protection::default())).unwrap();
        let layer =
            IdempotencyLayer::new(engine, Tenancy::single("shop").unwrap(), routes).unwrap();
        let served = layer.layer(service);
        let ask = || {
            Request::post("/payments").header("idempotency-key", "k").body(Body::empty()).unwrap()
        };
        let (_, again) =
            (served.clone().oneshot(ask()).await.unwrap(), served.oneshot(ask()).await.unwrap());
        let kept = again.headers().contains_key("idempotent-replayed");
        let end = match (kept, status) {
            (true, ..400) => "finish",
            (true, _) => "fail",
            (false, _) => "rollback",
        };
        cases.push(json!({ "status": status, "end": end }));
    }
    cases.extend(
        [500, 501, 502, 503, 504].map(|status| json!({ "status": status, "end": "rollback" })),
    );
    let about = "How a transaction ends whose handler answers with this status: with hapax.finish and COMMIT, with its writes \
                 rolled back to a savepoint, hapax.fail and COMMIT, or with ROLLBACK.";
    check("statuses.json", about, &cases);
}
