//! A client that retries until it is answered.

use std::time::Duration;

use axum::http::{Request, StatusCode, request::Builder};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

/// A client without any memory of its own.
#[derive(Clone)]
pub(crate) struct Shop {
    client: Client<HttpConnector, Full<Bytes>>,
}

/// What a client hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) replayed: bool,
}

/// The connection ended without an answer.
#[derive(Debug)]
pub(crate) struct NoAnswer;

const PAUSE: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(60);

impl Shop {
    pub(crate) fn new() -> Self {
        // A new connection for each request: what one process leaves behind is no matter of the next.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        Self { client }
    }

    /// Asks for a payment once.
    pub(crate) async fn pay(&self, address: &str, order: &str) -> Result<Answer, NoAnswer> {
        let request = Request::post(format!("{address}/payments"))
            .header("authorization", "Bearer shop-1")
            .header("idempotency-key", order);
        let body = json!({ "order": order, "cents": 900, "email": "ada@example.com" });
        self.send(request, body.to_string()).await
    }

    /// Asks until there is a final answer, or nobody to ask.
    pub(crate) async fn insist(&self, address: &str, order: &str) -> Result<Answer, NoAnswer> {
        let asking = async {
            loop {
                let answer = self.pay(address, order).await?;
                match answer.status {
                    StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE => sleep(PAUSE).await,
                    _ => return Ok(answer),
                }
            }
        };
        timeout(LIMIT, asking).await.expect("a payment must come to an end")
    }

    pub(crate) async fn send(&self, request: Builder, body: String) -> Result<Answer, NoAnswer> {
        let request = request.body(Full::from(body)).map_err(|_| NoAnswer)?;
        let response = self.client.request(request).await.map_err(|_| NoAnswer)?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|_| NoAnswer)?.to_bytes();
        let replayed = parts.headers.contains_key("idempotent-replayed");
        Ok(Answer { status: parts.status, body, replayed })
    }
}
