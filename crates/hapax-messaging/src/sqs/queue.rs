//! One queue, and how it is spoken to.

use std::{env, fmt, sync::Arc, time::Duration};

use hapax_core::time::Timestamp;
use reqwest::{StatusCode, Url};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    credentials::Credentials,
    error::{QueueError, SqsError},
    signature::{Place, Request, sign},
    wire::{Asked, Attributes, OfQueue, Refusal},
};
use crate::https;

const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// A queue of Amazon's SQS, or of a server that speaks like it. Clones share connections.
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    http: reqwest::Client,
    endpoint: Url,
    host: String,
    url: String,
    name: String,
    region: String,
    credentials: Credentials,
}

/// What a queue's URL does not say.
#[derive(Debug, Clone, Default)]
pub struct QueueOptions {
    /// Where requests are sent; otherwise `AWS_ENDPOINT_URL_SQS`, `AWS_ENDPOINT_URL`, or where the
    /// queue's URL points.
    pub endpoint: Option<String>,
    /// The region; otherwise that of the URL, `AWS_REGION` or `AWS_DEFAULT_REGION`.
    pub region: Option<String>,
    /// Who signs; otherwise [`Credentials::from_environment`].
    pub credentials: Option<Credentials>,
}

impl Queue {
    /// The queue with this URL. Nothing is sent yet.
    pub fn new(url: &str, options: QueueOptions) -> Result<Self, QueueError> {
        let no_queue = || QueueError::NoQueue { url: url.to_owned() };
        let parsed = Url::parse(url).map_err(|_| no_queue())?;
        let mut parts = parsed.path_segments().ok_or_else(no_queue)?;
        let name = parts.next_back().filter(|name| !name.is_empty()).ok_or_else(no_queue)?;
        let endpoint = options
            .endpoint
            .or_else(|| variable("AWS_ENDPOINT_URL_SQS"))
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .map_or_else(|| parsed.join("/"), |endpoint| Url::parse(&endpoint))
            .map_err(|_| no_queue())?;
        let host = endpoint.host_str().ok_or_else(no_queue)?;
        let host = endpoint.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let region = options
            .region
            .or_else(|| region_of(&parsed))
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .ok_or(QueueError::NoRegion)?;
        let credentials = match options.credentials {
            Some(credentials) => credentials,
            None => Credentials::from_environment()
                .map_err(|missing| QueueError::NoCredentials { missing })?,
        };
        let http = https::client().map_err(QueueError::Https)?;
        let (name, url) = (name.to_owned(), url.to_owned());
        let shared = Shared { http, endpoint, host, url, name, region, credentials };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Whether it keeps the order of a group's messages.
    pub fn keeps_order(&self) -> bool {
        self.name().ends_with(".fifo")
    }

    /// The values of these attributes of the queue that are numbers, in the same order.
    pub(crate) async fn numbers<const N: usize>(
        &self,
        names: [&str; N],
        patience: Duration,
    ) -> Result<[Option<u64>; N], SqsError> {
        let asked = Asked { attribute_names: &names };
        let found: Attributes = self.call("GetQueueAttributes", asked, patience).await?;
        Ok(names.map(|name| found.attributes.get(name)?.parse().ok()))
    }

    /// Asks for something and waits no longer than `patience` for the answer.
    pub(crate) async fn call<T: Serialize, A: DeserializeOwned>(
        &self,
        action: &str,
        what: T,
        patience: Duration,
    ) -> Result<A, SqsError> {
        let shared = &*self.shared;
        let body = serde_json::to_vec(&OfQueue { queue_url: &shared.url, what });
        let body = body.map_err(|cause| SqsError::Unreadable { status: 0, cause })?;
        let target = format!("AmazonSQS.{action}");
        let signed = sign(
            &Request {
                method: "POST",
                host: &shared.host,
                headers: &[("content-type", CONTENT_TYPE), ("x-amz-target", &target)],
                body: &body,
            },
            &Place { region: &shared.region, service: "sqs" },
            &shared.credentials,
            now(),
        );
        let mut request = shared.http.post(shared.endpoint.clone()).timeout(patience);
        request = request.header("content-type", CONTENT_TYPE).header("x-amz-target", target);
        request = request.header("x-amz-date", signed.date);
        if let Some(token) = shared.credentials.session_token() {
            request = request.header("x-amz-security-token", token);
        }
        let request = request.header("authorization", signed.authorization).body(body);
        let answer = request.send().await.map_err(SqsError::Unreachable)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(SqsError::Unreachable)?;
        read(status, &body)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("url", &self.shared.url).finish_non_exhaustive()
    }
}

fn read<A: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<A, SqsError> {
    let unreadable = |cause| SqsError::Unreadable { status: status.as_u16(), cause };
    if status.is_success() {
        // Actions without an answer of their own answer with nothing at all.
        let body = if body.is_empty() { b"{}" } else { body };
        return serde_json::from_slice(body).map_err(unreadable);
    }
    let refusal: Refusal = serde_json::from_slice(body).map_err(unreadable)?;
    let code = refusal.kind.rsplit('#').next().unwrap_or_default().to_owned();
    let message = refusal.message.unwrap_or_default();
    Err(SqsError::Refused { status: status.as_u16(), code, message })
}

/// `eu-central-1` of `sqs.eu-central-1.amazonaws.com`.
fn region_of(url: &Url) -> Option<String> {
    let mut parts = url.host_str()?.split('.');
    match (parts.next()?, parts.next()?, parts.next()?) {
        ("sqs", region, "amazonaws") => Some(region.to_owned()),
        _ => None,
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "a signature counts for minutes around its date")]
fn now() -> Timestamp {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::ZERO.plus(since_epoch.unwrap_or_default())
}
