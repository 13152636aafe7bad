//! A stored answer, as it is shown and as it is sent.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hapax::{Body, Outcome};
use serde::{Deserialize, Serialize};

/// A stored answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<HeaderText>,
    pub(super) body_bytes: u64,
    /// Whether those bytes are stored.
    pub(super) body_kept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    /// A body that is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body_base64: Option<String>,
}

/// One header of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HeaderText {
    pub(super) name: String,
    pub(super) value: String,
}

impl Answer {
    pub(super) fn of(outcome: &Outcome, with_body: bool) -> Self {
        let (kept, body_bytes) = match outcome.body() {
            Body::Kept(bytes) => (Some(bytes), u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Body::NotKept { len } => (None, *len),
            // A kind of body this version does not know is not shown.
            _ => (None, 0),
        };
        let text = kept.filter(|_| with_body).map(|bytes| str::from_utf8(bytes).map_err(|_| bytes));
        let (body, body_base64) = match text {
            None => (None, None),
            Some(Ok(text)) => (Some(text.to_owned()), None),
            Some(Err(bytes)) => (None, Some(BASE64_STANDARD.encode(bytes))),
        };
        let (status, headers, body_kept) = (outcome.status(), headers(outcome), kept.is_some());
        Self { status, headers, body_bytes, body_kept, body, body_base64 }
    }
}

/// An answer a person gives in the name of an operation, as the admin API takes it.
#[derive(Debug, Serialize)]
pub(super) struct GivenAnswer {
    status: u16,
    headers: Vec<HeaderText>,
    body_base64: String,
}

impl GivenAnswer {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let body: &[u8] = match outcome.body() {
            Body::Kept(bytes) => bytes,
            // What a person gives is always kept.
            Body::NotKept { .. } => &[],
            _ => &[],
        };
        let body_base64 = BASE64_STANDARD.encode(body);
        Self { status: outcome.status(), headers: headers(outcome), body_base64 }
    }
}

fn headers(outcome: &Outcome) -> Vec<HeaderText> {
    let headers = outcome.headers().iter().map(|header| HeaderText {
        name: header.name.clone(),
        value: String::from_utf8_lossy(&header.value).into_owned(),
    });
    headers.collect()
}
