//! A relay sends what was committed, and the receiver acts on it once.
#![expect(clippy::unwrap_used, reason = "these are tests: what they did not expect ends them")]

use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use hapax::{
    Event, Timestamp,
    messaging::{
        relay::Relay,
        sink::webhook::{ID, SIGNATURE, Secret, TIMESTAMP, Webhook, WebhookOptions, sign},
    },
    outbox::{Destination, OutboxAdmin as _, ParkedPage, Selection, Topics, memory::Outbox},
};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::time::sleep;
use webhook_receiver::app;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn secret() -> Secret {
    Secret::parse(SECRET).unwrap()
}

async fn start(file: &Path) -> String {
    let app = app(file, vec![secret()]).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

async fn send(request: http::request::Builder, body: &str) -> Response<Bytes> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    let (parts, body) = client.request(request).await.unwrap().into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

/// A webhook as somebody sends it who may know the secret.
async fn post(server: &str, id: &str, key: &str, body: &str, signed: &str) -> Response<Bytes> {
    #[expect(clippy::disallowed_methods, reason = "a signature says when it was made")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let request = Request::post(format!("{server}/events"))
        .header("content-type", "application/json")
        .header("idempotency-key", format!("\"{key}\""))
        .header(ID, id)
        .header(TIMESTAMP, now)
        .header(SIGNATURE, sign(&[secret()], id, now, signed.as_bytes()));
    send(request, body).await
}

async fn mails(server: &str) -> Vec<String> {
    let response = send(Request::get(format!("{server}/mails")), "").await;
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_again_is_acted_on_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&directory.path().join("mails.db")).await;
    let body = r#"{"customer":"ada"}"#;
    let first = post(&server, "e-1", "e-1", body, body).await;
    let again = post(&server, "e-1", "e-1", body, body).await;
    assert_eq!((first.status(), again.status()), (http::StatusCode::OK, http::StatusCode::OK));
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert_eq!(mails(&server).await, ["ada"]);

    let restarted = start(&directory.path().join("mails.db")).await;
    post(&restarted, "e-1", "e-1", body, body).await;
    assert_eq!(mails(&restarted).await, ["ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_signed_or_was_changed_is_refused_and_uses_up_no_key() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&directory.path().join("mails.db")).await;
    let body = r#"{"customer":"ada"}"#;
    let changed = post(&server, "e-1", "e-1", r#"{"customer":"eve"}"#, body).await;
    assert_eq!(changed.status(), 401);
    let other_key = post(&server, "e-1", "e-2", body, body).await;
    assert_eq!(other_key.status(), 400);
    assert_eq!(mails(&server).await, [""; 0]);
    assert_eq!(post(&server, "e-1", "e-1", body, body).await.status(), 200);
    assert_eq!(mails(&server).await, ["ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_looked_at_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&directory.path().join("mails.db")).await;
    for _ in 0..2 {
        let refused = post(&server, "e-1", "e-1", "{}", "{}").await;
        assert_eq!(refused.status(), 422);
        assert!(!refused.headers().contains_key("idempotent-replayed"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_thanks_each_customer_once_and_parks_what_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&directory.path().join("mails.db")).await;
    let outbox = Outbox::new(|| Timestamp::from_micros(1));
    for (key, body) in [
        ("order-1", r#"{"customer":"ada"}"#),
        ("order-2", r#"{"amount":3}"#),
        ("order-3", r#"{"customer":"eve"}"#),
    ] {
        outbox.emit(&[Event::new("orders.placed", key, body).unwrap()]);
    }
    let address = format!("{server}/events");
    let webhook = Webhook::new(&address, vec![secret()], WebhookOptions::default()).unwrap();
    let destination = Destination::new("mailer", Topics::all()).unwrap();
    let running = Relay::new(outbox.clone(), destination, webhook).spawn();
    let page = ParkedPage { after: 0, limit: 10 };
    while outbox.parked("mailer", Selection::All, page).await.unwrap().is_empty()
        || mails(&server).await.len() < 2
    {
        sleep(Duration::from_millis(20)).await;
    }
    running.stop().await.unwrap();
    let mut thanked = mails(&server).await;
    thanked.sort();
    assert_eq!(thanked, ["ada", "eve"]);
    let parked = outbox.parked("mailer", Selection::All, page).await.unwrap();
    assert_eq!(parked[0].event.key, "order-2");
    assert!(parked[0].reason.contains("422"), "{}", parked[0].reason);
}
