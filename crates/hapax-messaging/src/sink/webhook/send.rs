//! The sink.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_core::{OneLine, outbox::Stored};
use hapax_engine::wall_clock;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_TYPE, InvalidHeaderName, InvalidHeaderValue},
};
use reqwest::{Client, Method, Request, Response, Url};
use tokio::time::{Instant, timeout_at};

use super::{
    answer::judge,
    signature::{ID, SIGNATURE, Secret, TIMESTAMP, sign},
};
use crate::{
    https,
    sink::{CloudEvents, Outage, Sink, Verdict, cloudevent, in_chains},
};

/// Most of an answer that is told to people, in bytes.
const EXCERPT_BYTES_MAX: usize = 256;
/// Most of an answer that is read, so that its connection can be used again.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// What belongs to the connection or to us, and never to an event.
const RESERVED: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "webhook-",
];

/// Posts each event to an address, signed by the rules of Standard Webhooks.
///
/// The body is the payload, byte for byte. `webhook-id` and `Idempotency-Key` are the event's id,
/// the same in every attempt, so a receiver that deduplicates acts once. No redirect is followed.
///
/// The address is trusted as much as the configuration it comes from. Where customers name their
/// own, send through a proxy that does not reach your network.
///
/// ```no_run
/// use hapax_messaging::sink::webhook::{Secret, Webhook, WebhookOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let options = WebhookOptions::default();
/// let sink = Webhook::new("https://shop.example/events", vec![secret], options)?;
/// # drop(sink);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Webhook {
    client: Client,
    address: Url,
    secrets: Vec<Secret>,
    options: WebhookOptions,
    reserved: Vec<String>,
}

/// How a [`Webhook`] sends.
///
/// ```
/// use hapax_messaging::sink::webhook::WebhookOptions;
///
/// let mut options = WebhookOptions::default();
/// options.headers.insert("x-shop", http::HeaderValue::from_static("ulm"));
/// assert_eq!(options.at_once, 32);
/// ```
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// Where events say they come from.
    pub events: CloudEvents,
    /// Headers of every request, `Authorization` for example; an event's own cannot replace them.
    pub headers: HeaderMap,
    /// How long a receiver may take to answer.
    pub attempt_timeout: Duration,
    /// How long a call may take. What was not sent by then is missed.
    pub call_timeout: Duration,
    /// How many keys are sent at the same time.
    pub at_once: usize,
}

impl Default for WebhookOptions {
    /// 15 seconds for an answer, a minute for a call, 32 keys at the same time.
    fn default() -> Self {
        Self {
            events: CloudEvents::default(),
            headers: HeaderMap::new(),
            attempt_timeout: Duration::from_secs(15),
            call_timeout: Duration::from_secs(60),
            at_once: 32,
        }
    }
}

impl Webhook {
    /// A webhook at this address, signed with each of these secrets. Give the old one and the new
    /// one while they change.
    pub fn new(
        address: &str,
        secrets: Vec<Secret>,
        options: WebhookOptions,
    ) -> Result<Self, InvalidWebhook> {
        let address: Url = address.parse().map_err(|_| InvalidWebhook::Address)?;
        if !matches!(address.scheme(), "http" | "https") {
            return Err(InvalidWebhook::Address);
        }
        if secrets.is_empty() {
            return Err(InvalidWebhook::NoSecret);
        }
        let client = https::client().map_err(InvalidWebhook::Client)?;
        let own = options.headers.keys().map(|name| name.as_str().to_owned());
        let reserved = RESERVED.iter().map(|name| (*name).to_owned()).chain(own).collect();
        Ok(Self { client, address, secrets, options, reserved })
    }

    async fn deliver(&self, event: &Stored, end: Instant) -> Result<Verdict, Outage> {
        let request = match self.request(event, wall_clock()) {
            Ok(request) => request,
            Err(unfit) => return Ok(Verdict::Refused(unfit.to_string())),
        };
        let begun = Instant::now();
        if begun >= end {
            return Ok(Verdict::Missed("the call was over before it was sent".to_owned()));
        }
        let patience = end.min(begun + self.options.attempt_timeout);
        let answered = timeout_at(patience, async {
            let mut response = self.client.execute(request).await?;
            let excerpt = excerpt(&mut response).await;
            Ok::<_, reqwest::Error>((response, excerpt))
        });
        match answered.await {
            Ok(Ok((response, excerpt))) => {
                judge(response.status(), response.headers(), &excerpt, wall_clock())
            }
            Ok(Err(error)) if error.is_connect() => Err(Outage::new(error.without_url())),
            // The first word of reqwest's is seldom the one that helps.
            Ok(Err(error)) => Ok(Verdict::Missed(OneLine::of(&error.without_url()).to_string())),
            Err(_) => Ok(Verdict::Missed("the receiver did not answer in time".to_owned())),
        }
    }

    fn request(&self, event: &Stored, now: SystemTime) -> Result<Request, Unfit> {
        let mut request = Request::new(Method::POST, self.address.clone());
        let headers = request.headers_mut();
        let reserved: Vec<&str> = self.reserved.iter().map(String::as_str).collect();
        for (name, value) in cloudevent::own_headers(event, &reserved) {
            headers.append(HeaderName::try_from(name)?, HeaderValue::from_bytes(value)?);
        }
        headers.extend(self.options.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_bytes(event.content_type.as_bytes())?);
        for (attribute, value) in self.options.events.attributes(event) {
            let value = HeaderValue::try_from(&*cloudevent::percent_encoded(&value))?;
            headers.insert(attribute.hyphened(), value);
        }
        let (id, at) = (event.id.to_string(), now.duration_since(UNIX_EPOCH).unwrap_or_default());
        let signature = sign(&self.secrets, &id, at.as_secs(), &event.payload);
        headers.insert("idempotency-key", HeaderValue::try_from(format!("\"{id}\""))?);
        headers.insert(ID, HeaderValue::try_from(id)?);
        headers.insert(TIMESTAMP, HeaderValue::from(at.as_secs()));
        headers.insert(SIGNATURE, HeaderValue::try_from(signature)?);
        *request.body_mut() = Some(event.payload.clone().into());
        Ok(request)
    }
}

impl Sink for Webhook {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        let end = Instant::now() + self.options.call_timeout;
        in_chains(events, self.options.at_once, |event| self.deliver(event, end)).await
    }
}

/// The beginning of an answer, on one line; the rest is read as far as it is short.
async fn excerpt(response: &mut Response) -> String {
    let (mut beginning, mut read) = (Vec::new(), 0);
    while let Ok(Some(chunk)) = response.chunk().await {
        read += chunk.len();
        let room = EXCERPT_BYTES_MAX.saturating_sub(beginning.len());
        beginning.extend_from_slice(&chunk[..room.min(chunk.len())]);
        if read > ANSWER_BYTES_MAX {
            break;
        }
    }
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    String::from_utf8_lossy(&beginning).trim().chars().map(visible).collect()
}

/// Why an event cannot be sent as an HTTP request.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("the name of one of its headers cannot be sent over HTTP")]
    Name(#[from] InvalidHeaderName),
    #[error("its content type, or the value of one of its headers, cannot be sent over HTTP")]
    Value(#[from] InvalidHeaderValue),
}

/// Why there is no webhook.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWebhook {
    /// The address is none.
    #[error("a webhook's address begins with `https://` or `http://`")]
    Address,
    /// Without a secret a receiver cannot know who sends.
    #[error("give at least one secret to sign with")]
    NoSecret,
    /// The HTTP client could not be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}
