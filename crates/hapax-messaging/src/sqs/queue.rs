//! One queue, and how it is spoken to.

use std::{fmt, sync::Arc, time::Duration};

use http::{
    HeaderMap, Request,
    header::{CONTENT_TYPE, HOST},
};
use reqsign_aws_v4::{Credential, constants::X_AMZ_CONTENT_SHA_256};
use reqsign_core::{Signer, hash::hex_sha256};
use reqwest::{StatusCode, Url};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, timeout_at};

use super::{
    credentials::{Credentials, Variables},
    error::{QueueError, SqsError},
    wire::{AttributeQuery, Attributes, OfQueue, SqsRefusal},
};
use crate::https;

const AWS_JSON: &str = "application/x-amz-json-1.0";

/// A queue of Amazon's SQS, or of a server that speaks like it. Clones share connections.
///
/// ```no_run
/// use hapax_messaging::sqs::{Queue, QueueOptions};
///
/// let url = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo";
/// let queue = Queue::new(url, QueueOptions::default())?;
/// # drop(queue);
/// # Ok::<(), hapax_messaging::sqs::QueueError>(())
/// ```
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    http: reqwest::Client,
    signer: Signer<Credential>,
    endpoint: Url,
    url: String,
    name: String,
}

/// What a queue's URL does not say.
///
/// ```
/// use hapax_messaging::sqs::QueueOptions;
///
/// let region = Some("eu-central-1".to_owned());
/// let options = QueueOptions { region, ..QueueOptions::default() };
/// assert!(options.credentials.is_none());
/// ```
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
        let variables = Variables::of_process();
        let variable = |name| variables.get(name).map(str::to_owned);
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
        if !endpoint.has_host() {
            return Err(no_queue());
        }
        let region = options
            .region
            .or_else(|| region_of(&parsed))
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .ok_or(QueueError::NoRegion)?;
        let credentials = options.credentials.unwrap_or_else(Credentials::from_environment);
        let http = https::client().map_err(QueueError::Https)?;
        let signer = credentials.signer(http.clone(), &region);
        let (name, url) = (name.to_owned(), url.to_owned());
        let shared = Shared { http, signer, endpoint, url, name };
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
        let asked = AttributeQuery { attribute_names: &names };
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
        let deadline = Instant::now() + patience;
        let signed = timeout_at(deadline, self.headers(action, &body)).await;
        let headers = signed.map_err(|late| SqsError::CredentialsAway(late.into()))??;
        let request = shared.http.post(shared.endpoint.clone()).headers(headers).body(body);
        let request = request.timeout(deadline.saturating_duration_since(Instant::now()));
        let answer = request.send().await.map_err(SqsError::Unreachable)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(SqsError::Unreachable)?;
        read(status, &body)
    }

    /// The headers of a request with this body, signed.
    async fn headers(&self, action: &str, body: &[u8]) -> Result<HeaderMap, SqsError> {
        let request = Request::post(self.shared.endpoint.as_str())
            .header(CONTENT_TYPE, AWS_JSON)
            .header("x-amz-target", format!("AmazonSQS.{action}"))
            // Without it a signature would not cover the body.
            .header(X_AMZ_CONTENT_SHA_256, hex_sha256(body))
            .body(());
        let (mut head, ()) =
            request.map_err(|cause| SqsError::unsigned(cause.into()))?.into_parts();
        self.shared.signer.sign(&mut head, None).await.map_err(SqsError::unsigned)?;
        // The client writes the same.
        head.headers.remove(HOST);
        Ok(head.headers)
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
    let refusal: SqsRefusal = serde_json::from_slice(body).map_err(unreadable)?;
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
