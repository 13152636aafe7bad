//! A stored response as JSON: the same shape when it is shown and when it is sent.

use std::ops::RangeInclusive;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hapax_core::{Body, Header, Outcome};
use http::{
    HeaderName, HeaderValue,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING},
};
use serde::{Deserialize, Serialize};

use crate::admin::problem::Problem;

/// One header of a response.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderView {
    name: String,
    value: String,
}

/// The response a person wants answered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutcomeOrder {
    status: u16,
    #[serde(default)]
    headers: Vec<HeaderView>,
    body: Option<String>,
    body_base64: Option<String>,
}

impl OutcomeOrder {
    /// The outcome, if it can be answered as one that is `found`.
    pub(super) fn parse(
        self,
        statuses: RangeInclusive<u16>,
        found: &str,
    ) -> Result<Outcome, Problem> {
        if !statuses.contains(&self.status) {
            let (from, to) = (statuses.start(), statuses.end());
            let detail = format!("outcome: the status of what {found} is between {from} and {to}");
            return Err(Problem::invalid(detail));
        }
        let headers = self.headers.into_iter().map(header).collect::<Result<_, _>>()?;
        let body = match (self.body, self.body_base64) {
            (Some(_), Some(_)) => {
                return Err(Problem::invalid("outcome: send `body` or `body_base64`, not both"));
            }
            (Some(text), None) => Bytes::from(text),
            (None, Some(encoded)) => {
                let decoded = BASE64_STANDARD.decode(encoded);
                let not_base64 = |error| Problem::invalid(format!("outcome.body_base64: {error}"));
                Bytes::from(decoded.map_err(not_base64)?)
            }
            (None, None) => Bytes::new(),
        };
        Outcome::new(self.status, headers, Body::Kept(body))
            .map_err(|refusal| Problem::invalid(format!("outcome: {refusal}")))
    }
}

/// Refuses what would make the replayed response unreadable.
fn header(HeaderView { name, value }: HeaderView) -> Result<Header, Problem> {
    let invalid = |what| Problem::invalid(format!("outcome.headers: `{name}` {what}"));
    let parsed = HeaderName::try_from(name.as_str());
    let parsed = parsed.map_err(|_| invalid("is not the name of a header"))?;
    if [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(&parsed) {
        return Err(invalid("is about one connection; leave it out"));
    }
    HeaderValue::try_from(value.as_str()).map_err(|_| invalid("has a value no header can have"))?;
    Ok(Header { name: parsed.as_str().to_owned(), value: Bytes::from(value) })
}

/// A stored response.
#[derive(Debug, Serialize)]
pub(super) struct OutcomeView {
    status: u16,
    headers: Vec<HeaderView>,
    /// How many bytes the body has.
    body_bytes: u64,
    /// Whether those bytes are stored.
    body_kept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

impl OutcomeView {
    pub(super) fn of(outcome: &Outcome, with_body: bool) -> Self {
        let headers = outcome.headers().iter().map(|header| HeaderView {
            name: header.name.clone(),
            value: String::from_utf8_lossy(&header.value).into_owned(),
        });
        let mut view = Self {
            status: outcome.status(),
            headers: headers.collect(),
            body_bytes: 0,
            body_kept: false,
            body: None,
            body_base64: None,
        };
        match outcome.body() {
            Body::Kept(bytes) => {
                view.body_bytes = bytes.len().try_into().unwrap_or(u64::MAX);
                view.body_kept = true;
                match str::from_utf8(bytes) {
                    _ if !with_body => {}
                    Ok(text) => view.body = Some(text.to_owned()),
                    Err(_) => view.body_base64 = Some(BASE64_STANDARD.encode(bytes)),
                }
            }
            Body::NotKept { len } => view.body_bytes = *len,
            // A kind of body this version does not know is not shown.
            _ => {}
        }
        view
    }
}
