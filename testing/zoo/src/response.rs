//! What clients are told, as it is kept.

use bytes::Bytes;
use http::Response;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An answer: JSON, and few headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlainResponse {
    /// Its status.
    pub(crate) status: u16,
    /// Its headers, names in small letters, in the order they are written in.
    pub(crate) headers: Vec<(String, String)>,
    /// Its body.
    pub(crate) text: String,
}

impl PlainResponse {
    /// With this status and this JSON.
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Self {
        let json = ("content-type".to_owned(), "application/json".to_owned());
        Self { status, headers: vec![json], text: text.into() }
    }

    /// A refusal, or a failure.
    pub(crate) fn problem(status: u16, title: &str) -> Self {
        let mut response = Self::new(status, json!({ "title": title }).to_string());
        response.headers = vec![("content-type".into(), "application/problem+json".into())];
        response
    }

    /// With one more header.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// As a response of HTTP, its body made of these bytes.
    #[expect(clippy::expect_used, reason = "every header is ours or was one of a request")]
    pub(crate) fn written<B>(self, body: impl FnOnce(Bytes) -> B) -> Response<B> {
        let mut builder = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        builder.body(body(self.text.into())).expect("the response can be written")
    }
}
