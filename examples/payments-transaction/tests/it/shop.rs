//! A shop: a service on a database of its own, and whoever pays in it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use axum::{Router, routing::MethodRouter};
use bytes::Bytes;
use hapax::{
    Event,
    postgres::transaction::deadpool::Database,
    tower::{IdempotencyLayer, Protection, Routes, Tenancy, Treatment, Tx},
};
use http::{HeaderMap, Request, request::Builder};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::postgres::Postgres;

pub(crate) struct Shop {
    pub(crate) postgres: Postgres,
    pub(crate) url: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Shop {
    /// The example itself.
    pub(crate) async fn open() -> Self {
        let postgres = Postgres::new().await;
        let app = payments_transaction::app(postgres.pool()).await.unwrap();
        Self::at(postgres, &serve(app).await)
    }

    /// A shop with another handler behind the layer, on every path.
    pub(crate) async fn with(protection: Protection, handler: MethodRouter) -> Self {
        let postgres = Postgres::new().await;
        let database = Database::new(postgres.pool());
        let app = protected(database, protection, handler).await;
        Self::at(postgres, &serve(app).await)
    }

    pub(crate) fn at(postgres: Postgres, url: &str) -> Self {
        Self { postgres, url: url.to_owned(), client: client() }
    }

    pub(crate) async fn pay(&self, key: &str, body: &str) -> Answer {
        self.send(request(&self.url, key), body).await
    }

    pub(crate) async fn send(&self, request: Builder, body: &str) -> Answer {
        send(&self.client, request, body).await.unwrap()
    }
}

/// A handler behind a layer of its own.
pub(crate) async fn protected(
    database: Database,
    protection: Protection,
    handler: MethodRouter,
) -> Router {
    let routes = Routes::new(Treatment::Protect(protection)).unwrap();
    let layer = IdempotencyLayer::connect(database, Tenancy::credential(), routes).await.unwrap();
    Router::new().route("/payments", handler).layer(layer)
}

/// Serves it until the test ends; its address.
pub(crate) async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

pub(crate) fn client() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

/// A payment under this key.
pub(crate) fn request(url: &str, key: &str) -> Builder {
    unkeyed(url).header("idempotency-key", format!("\"{key}\""))
}

pub(crate) fn unkeyed(url: &str) -> Builder {
    Request::post(format!("{url}/payments"))
        .header("authorization", "Bearer shop-1")
        .header("content-type", "application/json")
}

pub(crate) async fn send(
    client: &Client<HttpConnector, Full<Bytes>>,
    request: Builder,
    body: &str,
) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
    let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
    let (parts, body) = client.request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
}

/// What a client heard.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }

    /// It is this refusal.
    pub(crate) fn check(&self, status: u16, code: &str) {
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let kind = problem["type"].as_str().unwrap_or_default().rsplit('/').next();
        assert_eq!((self.status, kind), (status, Some(code)), "{self:?}");
    }

    /// It is this refusal, and says when to come back.
    pub(crate) fn check_for_now(&self, status: u16, code: &str) {
        self.check(status, code);
        assert!(self.headers.contains_key("retry-after"), "{self:?}");
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begins = &self.body[..self.body.len().min(500)];
        write!(f, "{} {:?} {}", self.status, self.headers, String::from_utf8_lossy(begins))
    }
}

/// An order that can be paid.
pub(crate) fn order(cents: u32) -> String {
    format!(r#"{{"order":"order-17","account":"ada","cents":{cents}}}"#)
}

/// How often something was done.
#[derive(Clone, Default)]
pub(crate) struct Tally(Arc<AtomicUsize>);

impl Tally {
    /// Counts this time; how often it was done before.
    pub(crate) fn count(&self) -> usize {
        self.0.fetch_add(1, SeqCst)
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// What a handler writes: a payment and its event.
pub(crate) async fn write(tx: &mut Tx<Database>) -> Result<(), tokio_postgres::Error> {
    let insert = "INSERT INTO payments (order_id, account, cents) VALUES ('order-17', 'ada', 100)";
    tx.execute(insert, &[]).await?;
    tx.emit(Event::new("payment.completed", "order-17", "{}").unwrap());
    Ok(())
}
