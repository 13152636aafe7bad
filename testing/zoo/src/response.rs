//! What clients are told, as it is kept.

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
}
