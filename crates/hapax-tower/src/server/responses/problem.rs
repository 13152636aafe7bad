//! A refusal as a problem document of RFC 9457.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use hapax_core::{Body as StoredBody, Header, OperationId, Outcome, Part};
use http::{
    HeaderName, HeaderValue, Response,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, LINK, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::json;

use crate::{
    body::Body,
    server::{layer::Site, requests::headers::REFUSAL, responses::code::Code, verdict::Unanswered},
};

/// A refusal: its kind, and what this request should hear.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    detail: Cow<'static, str>,
    retry_after: Option<Duration>,
    differs: Vec<Part>,
    operation: Option<OperationId>,
    /// Boxed, because few refusals have one.
    challenge: Option<Box<HeaderValue>>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        Self {
            code,
            detail,
            retry_after: None,
            differs: Vec::new(),
            operation: None,
            challenge: None,
        }
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

    /// With how the caller may prove who it is.
    pub(crate) fn challenge(self, challenge: HeaderValue) -> Self {
        Self { challenge: Some(Box::new(challenge)), ..self }
    }

    pub(crate) fn into_response(self, site: &Site) -> Response<Body> {
        let mut response = Response::new(Body::from(self.document(site)));
        *response.status_mut() = self.code.status();
        for (name, value) in self.headers(site) {
            response.headers_mut().insert(name, value);
        }
        // Whoever tells it in other words needs to know what it says.
        response.extensions_mut().insert(self);
        response
    }

    /// What a client hears in place of the answer of something that was to be run.
    pub(crate) fn in_place_of_an_answer(self, site: &Site) -> Response<Body> {
        let unanswered = Unanswered(self.code);
        let mut response = self.into_response(site);
        response.extensions_mut().insert(unanswered);
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

    /// What it says, in sentences.
    pub(crate) fn message(&self) -> String {
        let said = format!("{}. {}", self.code.title(), self.detail);
        if self.differs.is_empty() {
            return said;
        }
        let parts: Vec<_> = self.differs.iter().map(|part| part.as_str()).collect();
        format!("{said} What differs: {}.", parts.join(", "))
    }

    fn headers(&self, site: &Site) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let link = format!("<{}>; rel=\"describedby\"", site.page(self.code));
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
            (CONTENT_LANGUAGE, HeaderValue::from_static("en")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (REFUSAL, HeaderValue::from_static(self.code.code())),
        ];
        headers.extend(HeaderValue::try_from(link).ok().map(|link| (LINK, link)));
        headers.extend(self.retry_after.map(|wait| (RETRY_AFTER, seconds(wait))));
        headers.extend(self.challenge.iter().map(|how| (WWW_AUTHENTICATE, (**how).clone())));
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
        if let Some(address) = self.operation.and_then(|id| site.operation(id)) {
            document["operation"] = address.into();
        }
        Bytes::from(document.to_string())
    }
}

/// Whole seconds, rounded up, at least one: a client must never come back too early.
pub(crate) fn seconds(wait: Duration) -> HeaderValue {
    let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    HeaderValue::from(whole.max(1))
}
