use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    http::{Request, StatusCode},
    routing::{get, post},
};
use hapax::{Hapax, Json, Recovery, days, secs, tower::Tenancy};
use tower::ServiceExt;

#[derive(Clone, Default)]
struct Till(Arc<AtomicU32>);

async fn pay(State(till): State<Till>) -> (StatusCode, String) {
    (StatusCode::CREATED, format!("payment {}", till.0.fetch_add(1, Relaxed) + 1))
}

async fn send(app: &Router, method: &str, key: Option<&str>, body: &str) -> (u16, String) {
    let mut request = Request::builder().method(method).uri("/payments");
    request = request.header("authorization", "Bearer acme");
    request = request.header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_layer_runs_what_changes_something_once_per_key() {
    let (hapax, till) = (Hapax::open("memory:").await.unwrap(), Till::default());
    let app = Router::new()
        .route("/payments", post(pay).merge(get(|| async { "a list" })))
        .with_state(till.clone())
        .layer(hapax.layer(Tenancy::credential()));
    for _ in 0..2 {
        let paid = send(&app, "POST", Some("k-1"), "{}").await;
        assert_eq!(paid, (201, "payment 1".to_owned()));
    }
    assert_eq!(send(&app, "POST", None, "{}").await.0, 400);
    assert_eq!(send(&app, "POST", Some("k-1"), "[]").await.0, 422);
    assert_eq!(send(&app, "GET", None, "").await, (200, "a list".to_owned()));
    assert_eq!(till.0.load(Relaxed), 1);
}

#[tokio::test]
async fn a_layer_around_one_route_protects_as_it_is_told() {
    let (hapax, till) = (Hapax::open("memory:").await.unwrap(), Till::default());
    let layer = hapax
        .layer(Tenancy::credential())
        .compare(Json.ignoring("/sent_at"))
        .wait(secs(5))
        .retain(days(7))
        .recover(Recovery::Resend)
        .optional_key();
    let app = Router::new().route("/payments", post(pay).layer(layer)).with_state(till.clone());
    for sent_at in ["12:00", "12:05"] {
        let order = format!(r#"{{"cents":100,"sent_at":"{sent_at}"}}"#);
        assert_eq!(send(&app, "POST", Some("k-1"), &order).await, (201, "payment 1".to_owned()));
    }
    let without_key = send(&app, "POST", None, "{}").await;
    assert_eq!(without_key, (201, "payment 2".to_owned()));
    assert_eq!(till.0.load(Relaxed), 2);
}

#[tokio::test]
#[should_panic(expected = "the layer contradicts itself")]
async fn a_layer_that_contradicts_itself_is_told_before_anything_is_served() {
    let hapax = Hapax::open("memory:").await.unwrap();
    let _layer = hapax.layer(Tenancy::credential()).recover(Recovery::Probe);
}
