//! Every refusal, in one table, as RFC 9457 problem documents.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use hapax_core::{Body as StoredBody, Header, OperationId, Outcome, Part};
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, LINK, RETRY_AFTER},
};
use serde_json::json;

use super::{async_status, layer::Site};
use crate::body::Body;

/// A refusal: its kind, and what this request should hear.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    detail: Cow<'static, str>,
    retry_after: Option<Duration>,
    differs: Vec<Part>,
    operation: Option<OperationId>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        Self { code, detail, retry_after: None, differs: Vec::new(), operation: None }
    }

    /// With the time after which asking again makes sense.
    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// With the parts of the request that differ.
    pub(crate) fn differs(self, parts: impl Iterator<Item = Part>) -> Self {
        Self { differs: parts.collect(), ..self }
    }

    /// With the address where the operation can be looked at.
    pub(crate) fn operation(self, id: OperationId) -> Self {
        Self { operation: Some(id), ..self }
    }

    pub(crate) fn into_response(self, site: &Site) -> Response<Body> {
        let mut response = Response::new(Body::from(self.document(site)));
        *response.status_mut() = self.code.status();
        for (name, value) in self.headers(site) {
            response.headers_mut().insert(name, value);
        }
        response
    }

    /// The same answer, to be stored where a policy stores what the client was told.
    pub(crate) fn to_outcome(&self, site: &Site) -> Outcome {
        let headers = self.headers(site).map(|(name, value)| Header {
            name: name.as_str().to_owned(),
            value: Bytes::copy_from_slice(value.as_bytes()),
        });
        let status = self.code.status().as_u16();
        let body = StoredBody::Kept(self.document(site));
        Outcome::new(status, headers.collect(), body).unwrap_or_else(|_| Outcome::bare(status))
    }

    fn headers(&self, site: &Site) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let link = format!("<{}>; rel=\"describedby\"", site.page(self.code));
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
            (CONTENT_LANGUAGE, HeaderValue::from_static("en")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        headers.extend(HeaderValue::try_from(link).ok().map(|link| (LINK, link)));
        headers.extend(self.retry_after.map(|wait| (RETRY_AFTER, seconds(wait))));
        headers.into_iter()
    }

    fn document(&self, site: &Site) -> Bytes {
        let mut document = json!({
            "type": site.page(self.code),
            "title": self.code.title(),
            "status": self.code.status().as_u16(),
            "detail": self.detail,
            "code": self.code.code(),
        });
        if !self.differs.is_empty() {
            document["differs"] = self.differs.iter().map(|part| part.as_str()).collect();
        }
        if let Some(id) = self.operation {
            document["operation"] = async_status::location(site, id).into();
        }
        Bytes::from(document.to_string())
    }
}

/// Whole seconds, rounded up, at least one: a client must never come back too early.
pub(crate) fn seconds(wait: Duration) -> HeaderValue {
    let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    HeaderValue::from(whole.max(1))
}

/// Why a request was not answered by the protected service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A key is required here and none was sent.
    KeyMissing,
    /// The key is not one quoted string, and not a plain one either.
    KeyMalformed,
    /// The route is strict, and the key came without its quotes.
    KeyNotQuoted,
    /// The key has no characters, or only spaces.
    KeyEmpty,
    /// The key is longer than 255 characters; it is never cut.
    KeyTooLong,
    /// There is more than one header line with a key.
    KeyRepeated,
    /// The key belongs to a request that was not this one.
    KeyReused,
    /// The first request with the key is still being worked on.
    KeyInFlight,
    /// The operation was done, and its answer is no longer kept.
    KeyGone,
    /// `Repeatability-First-Sent` is not an HTTP date.
    FirstSentMalformed,
    /// It can no longer be told whether the operation was done.
    FirstSentTooOld,
    /// Nobody can be told whose key this is.
    CredentialMissing,
    /// The path is too long, or not visible ASCII.
    ScopeUnusable,
    /// `CONNECT` or `Upgrade` came with a key.
    UpgradeRefused,
    /// The body is larger than the route reads.
    BodyTooLarge,
    /// The body ended before it was complete.
    BodyIncomplete,
    /// The body cannot be compared as JSON.
    BodyNotCanonical,
    /// `Content-Encoding` was sent to a route that compares JSON.
    BodyEncoded,
    /// An attempt ended without an answer, and must not be repeated by itself.
    OutcomeInDoubt,
    /// It ran, and the store did not take its outcome.
    OutcomeNotRecorded,
    /// The response was too large to keep.
    ResponseNotRetained,
    /// What is stored is not what was written.
    StoredResponseCorrupt,
    /// This process cannot read it.
    StoredByNewerVersion,
    /// Without the store nothing is run.
    StoreUnavailable,
    /// The store is not keeping up.
    Overloaded,
    /// Nothing new is begun here.
    ShuttingDown,
    /// The service panicked.
    ExecutionPanicked,
    /// The service was stopped at its time limit.
    ExecutionTimedOut,
    /// The service failed, or its answer broke off.
    ExecutionUnanswered,
    /// The service refused before it began.
    ExecutionNotStarted,
    /// Nothing is known under this address.
    OperationUnknown,
}

impl Code {
    /// Every code.
    pub const ALL: &[Self] = &[
        Self::KeyMissing,
        Self::KeyMalformed,
        Self::KeyNotQuoted,
        Self::KeyEmpty,
        Self::KeyTooLong,
        Self::KeyRepeated,
        Self::KeyReused,
        Self::KeyInFlight,
        Self::KeyGone,
        Self::FirstSentMalformed,
        Self::FirstSentTooOld,
        Self::CredentialMissing,
        Self::ScopeUnusable,
        Self::UpgradeRefused,
        Self::BodyTooLarge,
        Self::BodyIncomplete,
        Self::BodyNotCanonical,
        Self::BodyEncoded,
        Self::OutcomeInDoubt,
        Self::OutcomeNotRecorded,
        Self::ResponseNotRetained,
        Self::StoredResponseCorrupt,
        Self::StoredByNewerVersion,
        Self::StoreUnavailable,
        Self::Overloaded,
        Self::ShuttingDown,
        Self::ExecutionPanicked,
        Self::ExecutionTimedOut,
        Self::ExecutionUnanswered,
        Self::ExecutionNotStarted,
        Self::OperationUnknown,
    ];

    /// The last part of a problem's `type`, and the name of the page that explains it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyMalformed => "key-malformed",
            Self::KeyNotQuoted => "key-not-quoted",
            Self::KeyEmpty => "key-empty",
            Self::KeyTooLong => "key-too-long",
            Self::KeyRepeated => "key-repeated",
            Self::KeyReused => "key-reused",
            Self::KeyInFlight => "key-in-flight",
            Self::KeyGone => "key-gone",
            Self::FirstSentMalformed => "first-sent-malformed",
            Self::FirstSentTooOld => "first-sent-too-old",
            Self::CredentialMissing => "credential-missing",
            Self::ScopeUnusable => "scope-unusable",
            Self::UpgradeRefused => "upgrade-refused",
            Self::BodyTooLarge => "body-too-large",
            Self::BodyIncomplete => "body-incomplete",
            Self::BodyNotCanonical => "body-not-canonical",
            Self::BodyEncoded => "body-encoded",
            Self::OutcomeInDoubt => "outcome-in-doubt",
            Self::OutcomeNotRecorded => "outcome-not-recorded",
            Self::ResponseNotRetained => "response-not-retained",
            Self::StoredResponseCorrupt => "stored-response-corrupt",
            Self::StoredByNewerVersion => "stored-by-newer-version",
            Self::StoreUnavailable => "store-unavailable",
            Self::Overloaded => "overloaded",
            Self::ShuttingDown => "shutting-down",
            Self::ExecutionPanicked => "execution-panicked",
            Self::ExecutionTimedOut => "execution-timed-out",
            Self::ExecutionUnanswered => "execution-unanswered",
            Self::ExecutionNotStarted => "execution-not-started",
            Self::OperationUnknown => "operation-unknown",
        }
    }

    /// One sentence that is the same for every refusal of this kind.
    pub const fn title(self) -> &'static str {
        match self {
            Self::KeyMissing => "The request has no idempotency key",
            Self::KeyMalformed => "The idempotency key is malformed",
            Self::KeyNotQuoted => "The idempotency key is not quoted",
            Self::KeyEmpty => "The idempotency key is empty",
            Self::KeyTooLong => "The idempotency key is too long",
            Self::KeyRepeated => "The idempotency key was sent more than once",
            Self::KeyReused => "The idempotency key was used for another request",
            Self::KeyInFlight => "A request with this idempotency key is in progress",
            Self::KeyGone => "The idempotency key is past its retention",
            Self::FirstSentMalformed => "The time of the first attempt is missing or malformed",
            Self::FirstSentTooOld => "The first attempt is older than what is remembered",
            Self::CredentialMissing => "The request has no credential",
            Self::ScopeUnusable => "The path cannot name an operation",
            Self::UpgradeRefused => "A connection cannot be upgraded under an idempotency key",
            Self::BodyTooLarge => "The request is too large",
            Self::BodyIncomplete => "The request ended early",
            Self::BodyNotCanonical => "The JSON body has no single meaning",
            Self::BodyEncoded => "An encoded body cannot be compared as JSON",
            Self::OutcomeInDoubt => "Nobody knows whether the operation happened",
            Self::OutcomeNotRecorded => "The outcome could not be recorded",
            Self::ResponseNotRetained => "The operation was done and its response was not kept",
            Self::StoredResponseCorrupt => "The stored response is damaged",
            Self::StoredByNewerVersion => "The stored record was written by a newer version",
            Self::StoreUnavailable => "The store cannot be asked",
            Self::Overloaded => "Too many operations are waiting",
            Self::ShuttingDown => "The service is shutting down",
            Self::ExecutionPanicked => "The service failed while it was at work",
            Self::ExecutionTimedOut => "The service took too long",
            Self::ExecutionUnanswered => "The service gave no complete answer",
            Self::ExecutionNotStarted => "The service was not ready",
            Self::OperationUnknown => "There is no such operation",
        }
    }

    /// The status it is answered with.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::KeyMissing
            | Self::KeyMalformed
            | Self::KeyNotQuoted
            | Self::KeyEmpty
            | Self::KeyTooLong
            | Self::KeyRepeated
            | Self::FirstSentMalformed
            | Self::ScopeUnusable
            | Self::UpgradeRefused
            | Self::BodyIncomplete
            | Self::BodyNotCanonical => StatusCode::BAD_REQUEST,
            Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::KeyInFlight | Self::OutcomeInDoubt | Self::ResponseNotRetained => {
                StatusCode::CONFLICT
            }
            Self::KeyGone => StatusCode::GONE,
            Self::FirstSentTooOld => StatusCode::PRECONDITION_FAILED,
            Self::CredentialMissing => StatusCode::UNAUTHORIZED,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyEncoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::OutcomeNotRecorded
            | Self::StoredByNewerVersion
            | Self::StoreUnavailable
            | Self::Overloaded
            | Self::ShuttingDown
            | Self::ExecutionNotStarted => StatusCode::SERVICE_UNAVAILABLE,
            Self::StoredResponseCorrupt | Self::ExecutionPanicked => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::ExecutionTimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::ExecutionUnanswered => StatusCode::BAD_GATEWAY,
            Self::OperationUnknown => StatusCode::NOT_FOUND,
        }
    }
}
