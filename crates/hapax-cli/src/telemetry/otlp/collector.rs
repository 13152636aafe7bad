//! A collector, spoken to over HTTP or gRPC by the client that also speaks to upstreams.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use hapax_gateway::{
    client::{SendError, UpstreamClient, UpstreamClientError},
    config::{Protocol, Upstream},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode,
    header::{CONTENT_TYPE, HOST, TE, USER_AGENT},
};
use http_body_util::{BodyExt, Limited};
use tokio::time::timeout;

use super::super::settings::{OtlpProtocol, OtlpSettings};

/// Most bytes of a collector's answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Connections to a collector: one for spans, one for metrics, and one to spare.
const CONNECTIONS_MAX: usize = 3;

const USER: &str = concat!("hapax/", env!("CARGO_PKG_VERSION"));
static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Somebody who takes OTLP.
pub(super) struct Collector {
    client: UpstreamClient,
    protocol: OtlpProtocol,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
}

/// What kind of thing is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OtlpSignal {
    Traces,
    Metrics,
}

impl OtlpSignal {
    fn path(self, protocol: OtlpProtocol) -> &'static str {
        match (self, protocol) {
            (Self::Traces, OtlpProtocol::Http) => "/v1/traces",
            (Self::Metrics, OtlpProtocol::Http) => "/v1/metrics",
            (Self::Traces, OtlpProtocol::Grpc) => {
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
            }
            (Self::Metrics, OtlpProtocol::Grpc) => {
                "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
            }
        }
    }
}

impl Collector {
    pub(super) fn new(settings: &OtlpSettings) -> Result<Self, UpstreamClientError> {
        let OtlpSettings { endpoint, protocol, headers, ca, timeout, .. } = settings;
        let upstream = Upstream {
            protocol: match protocol {
                OtlpProtocol::Grpc => Protocol::Http2,
                OtlpProtocol::Http => Protocol::Automatic,
            },
            connections_max: CONNECTIONS_MAX,
            ca: ca.clone(),
            ..Upstream::at(endpoint.clone())
        };
        let client = UpstreamClient::new(&upstream)?;
        Ok(Self { client, protocol: *protocol, headers: headers.clone(), timeout: *timeout })
    }

    /// Tells it this message of this kind, once.
    pub(super) async fn push(&self, signal: OtlpSignal, message: &[u8]) -> Result<(), PushError> {
        let telling = async {
            match self.protocol {
                OtlpProtocol::Http => self.post(signal, message).await,
                OtlpProtocol::Grpc => self.call(signal, message).await,
            }
        };
        timeout(self.timeout, telling).await.unwrap_or(Err(PushError::Overdue))
    }

    async fn post(&self, signal: OtlpSignal, message: &[u8]) -> Result<(), PushError> {
        let request = self.request(signal, Bytes::copy_from_slice(message));
        let response = self.client.send(request.map(Into::into)).await?;
        let (parts, body) = response.into_parts();
        if parts.status.is_success() {
            return Ok(());
        }
        let said = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let said = said.map(|said| said.to_bytes()).unwrap_or_default();
        Err(PushError::Status { status: parts.status, said: shortened(&said) })
    }

    /// One call of gRPC: a message after its length, and a status after the answer.
    async fn call(&self, signal: OtlpSignal, message: &[u8]) -> Result<(), PushError> {
        let mut framed = BytesMut::with_capacity(GRPC_PREFIX_BYTES + message.len());
        framed.put_u8(NOT_COMPRESSED);
        framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
        framed.put_slice(message);
        let request = self.request(signal, framed.freeze());
        let (parts, body) = self.client.send(request.map(Into::into)).await?.into_parts();
        if !parts.status.is_success() {
            return Err(PushError::Status { status: parts.status, said: String::new() });
        }
        // A call that fails at once may say so in its only head.
        let trailers = match parts.headers.contains_key(&GRPC_STATUS) {
            true => parts.headers,
            false => {
                let answer = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
                let answer =
                    answer.map_err(|cause| PushError::Send(SendError::Unanswered(cause)))?;
                answer.trailers().cloned().unwrap_or_default()
            }
        };
        match grpc_status(&trailers) {
            Some(0) => Ok(()),
            status => {
                let said = trailers.get("grpc-message").map(HeaderValue::as_bytes);
                Err(PushError::Grpc { status, said: shortened(said.unwrap_or_default()) })
            }
        }
    }

    fn request(&self, signal: OtlpSignal, body: Bytes) -> Request<Bytes> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        if let Ok(target) = signal.path(self.protocol).parse() {
            *request.uri_mut() = target;
        }
        let headers = request.headers_mut();
        headers.insert(HOST, self.client.authority().clone());
        headers.insert(USER_AGENT, HeaderValue::from_static(USER));
        match self.protocol {
            OtlpProtocol::Http => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
            }
            OtlpProtocol::Grpc => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert(TE, HeaderValue::from_static("trailers"));
            }
        }
        headers.extend(self.headers.iter().cloned());
        request
    }
}

/// What stands before a message of gRPC.
const GRPC_PREFIX_BYTES: usize = 5;
const NOT_COMPRESSED: u8 = 0;
/// Most characters of a collector's words that are told to people.
const SAID_CHARS_MAX: usize = 200;

fn grpc_status(trailers: &HeaderMap) -> Option<u32> {
    trailers.get(&GRPC_STATUS)?.to_str().ok()?.parse().ok()
}

/// What can be shown of what it said.
fn shortened(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    said.chars().filter(|char| !char.is_control()).take(SAID_CHARS_MAX).collect()
}

/// Why a collector did not take something.
#[derive(Debug, thiserror::Error)]
pub(super) enum PushError {
    #[error("the collector cannot be spoken to")]
    Send(#[from] SendError),
    #[error("the collector did not answer in time")]
    Overdue,
    #[error("the collector answered {status} {said}")]
    Status { status: StatusCode, said: String },
    #[error("the collector answered with gRPC status {status:?} {said}")]
    Grpc { status: Option<u32>, said: String },
}

impl PushError {
    /// Whether the same may be taken later, as OTLP says.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Send(_) | Self::Overdue => true,
            Self::Status { status, .. } => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            Self::Grpc { status, .. } => {
                // Cancelled, deadline exceeded, exhausted, aborted, out of range, unavailable, data lost; or none.
                matches!(status, None | Some(1 | 4 | 8 | 10 | 11 | 14 | 15))
            }
        }
    }
}
