use base64::{Engine as _, prelude::BASE64_STANDARD};
use hapax_core::{Body, Outcome};
use serde::{Deserialize, Serialize};

use super::record::shown_bytes;

/// One header of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderDocument {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A stored response, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredOutcome {
    /// Its status.
    pub status: u16,
    /// Its stored headers.
    pub headers: Vec<HeaderDocument>,
    /// How many bytes its body has.
    pub body_bytes: u64,
    /// Whether those bytes are stored.
    pub body_kept: bool,
    /// Whether headers and body are encrypted, and whoever shows this has no key to read them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// The body, if it was asked for and is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The body in base64, if it was asked for and is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

/// A response a person gives in the name of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenOutcome {
    /// Its status.
    pub status: u16,
    /// Its headers.
    #[serde(default)]
    pub headers: Vec<HeaderDocument>,
    /// Its body, if it is text; never together with `body_base64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Its body in base64; never together with `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

impl StoredOutcome {
    pub(super) fn of(outcome: &Outcome, with_body: bool) -> Self {
        let (kept, body_bytes) = match outcome.body() {
            Body::Kept(bytes) => (Some(bytes), u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Body::NotKept { len } | Body::Sealed { len, .. } => (None, *len),
            // A kind of body this version does not know is not shown.
            _ => (None, 0),
        };
        let (body, body_base64) = kept.map_or((None, None), |bytes| shown_bytes(bytes, with_body));
        let encrypted = matches!(outcome.body(), Body::Sealed { .. });
        let body_kept = kept.is_some() || encrypted;
        let (status, headers) = (outcome.status(), headers(outcome));
        Self { status, headers, body_bytes, body_kept, encrypted, body, body_base64 }
    }
}

impl GivenOutcome {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let body_base64 = match outcome.body() {
            Body::Kept(bytes) => Some(BASE64_STANDARD.encode(bytes)),
            // What a person gives is always kept.
            Body::NotKept { .. } | Body::Sealed { .. } => None,
            _ => None,
        };
        Self { status: outcome.status(), headers: headers(outcome), body: None, body_base64 }
    }
}

fn headers(outcome: &Outcome) -> Vec<HeaderDocument> {
    let headers = outcome.headers().iter().map(|header| HeaderDocument {
        name: header.name.clone(),
        value: String::from_utf8_lossy(&header.value).into_owned(),
    });
    headers.collect()
}
