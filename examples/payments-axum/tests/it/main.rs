//! The service is started, and an ordinary HTTP client retries.
#![expect(clippy::unwrap_used, reason = "these are tests: what they did not expect ends them")]

use std::path::Path;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use payments_axum::{Bank, app};

async fn start(keys: &Path, bank: Bank) -> String {
    let app = app(keys, bank).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

async fn send(request: http::request::Builder, body: &'static str) -> Response<Bytes> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let request = request.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap();
    let (parts, body) = client.request(request).await.unwrap().into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

async fn pay(server: &str, key: &str, body: &'static str) -> Response<Bytes> {
    let request = Request::post(format!("{server}/payments"))
        .header("authorization", "Bearer shop-1")
        .header("content-type", "application/json")
        .header("idempotency-key", key);
    send(request, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_payment_charges_once_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys.db");
    let bank = Bank::default();
    let server = start(&keys, bank.clone()).await;
    let first = pay(&server, "order-17", r#"{"cents":100,"sent_at":1}"#).await;
    assert_eq!(first.status(), 201);
    let retry = pay(&server, "order-17", r#"{"sent_at":2,"cents":100}"#).await;
    assert_eq!(retry.headers()["idempotent-replayed"], "true");
    assert_eq!((first.status(), first.body()), (retry.status(), retry.body()));
    assert_eq!(bank.charges(), [100]);

    let restarted = start(&keys, bank.clone()).await;
    let retry = pay(&restarted, "order-17", r#"{"cents":100,"sent_at":3}"#).await;
    assert_eq!(first.body(), retry.body());
    assert_eq!(bank.charges(), [100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_amount_under_the_same_key_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let bank = Bank::default();
    let server = start(&directory.path().join("keys.db"), bank.clone()).await;
    pay(&server, "order-17", r#"{"cents":100}"#).await;
    assert_eq!(pay(&server, "order-17", r#"{"cents":999}"#).await.status(), 422);
    assert_eq!(bank.charges(), [100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_can_look_up_the_policy_and_what_a_refusal_means() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&directory.path().join("keys.db"), Bank::default()).await;
    for page in ["", "/openapi.json", "/errors/key-reused"] {
        let request = Request::get(format!("{server}/.well-known/idempotency{page}"));
        assert_eq!(send(request, "").await.status(), 200, "{page}");
    }
}
