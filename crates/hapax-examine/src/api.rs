//! What is examined, and how its effect is asked for.

use crate::{ExamRequest, HttpAddress, JsonPath};

/// An API that has an effect.
#[derive(Debug, Clone)]
pub struct ApiUnderTest {
    /// Where it is. Others than the first serve the same API, with the same effects.
    pub addresses: Vec<HttpAddress>,
    /// `POST`, as a rule.
    pub method: String,
    /// Path and query; `{marker}` in it is replaced as in the body.
    pub path: String,
    /// What every request brings beside its key, its credentials and what describes its body.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: BodyTemplate,
    /// How keys are sent.
    pub key: KeyHeader,
    /// Who asks.
    pub credentials: ApiCredentials,
    /// Where in an answer the name of the effect is.
    pub id: Option<JsonPath>,
    /// The path of another operation that takes the same request.
    pub other_path: Option<String>,
    /// The path of an operation that takes the same request and whose answer is large (a MiB or more).
    pub large_path: Option<String>,
}

/// A body in which each fresh operation has its own marker.
#[derive(Debug, Clone)]
pub struct BodyTemplate {
    /// `application/json`, as a rule.
    pub content_type: String,
    /// What is sent; `{marker}` is replaced.
    pub text: String,
    /// The same with another value, for a key that comes twice; made from `text` if that is JSON or a form and there is none.
    pub changed: Option<String>,
    /// One that the API refuses for its content; made from `text` if that is JSON or a form and there is none.
    pub invalid: Option<String>,
}

/// The header that keys are sent in.
#[derive(Debug, Clone)]
pub struct KeyHeader {
    /// `Idempotency-Key`, as a rule.
    pub name: String,
    /// How it is written; found out if this is not said.
    pub syntax: Option<KeySyntax>,
    /// Whether keys must be UUIDs.
    pub uuids: bool,
    /// Headers that name when a request was first sent, as `Repeatability-First-Sent` does.
    pub first_sent: Option<String>,
}

/// How a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySyntax {
    /// `k-1`.
    Bare,
    /// `"k-1"`, as the draft of the IETF has it.
    Quoted,
}

/// Headers that say who asks.
pub type CredentialHeaders = Vec<(String, String)>;

/// Who asks.
#[derive(Debug, Clone, Default)]
pub struct ApiCredentials {
    /// Who asks everything; empty where nobody is asked for a name.
    pub main: CredentialHeaders,
    /// Somebody else who may ask the same.
    pub other: Option<CredentialHeaders>,
    /// What was the main one's, and is revoked or over.
    pub revoked: Option<CredentialHeaders>,
}

impl ApiUnderTest {
    /// What every request brings beside its key and its credentials.
    pub(crate) fn plain_headers(&self) -> Vec<(String, String)> {
        let content_type = ("Content-Type".to_owned(), self.body.content_type.clone());
        std::iter::once(content_type).chain(self.headers.iter().cloned()).collect()
    }
}

impl BodyTemplate {
    /// The body of the operation that is marked so.
    pub fn marked(&self, marker: &str) -> String {
        self.text.replace("{marker}", marker)
    }

    /// A request that is never sent, to see what can be made of the body.
    pub(crate) fn sample(&self) -> ExamRequest {
        let marker = "{marker}".to_owned();
        ExamRequest { marker, ..ExamRequest::get("/", Vec::new()) }.with_body(self.text.clone())
    }
}

impl KeySyntax {
    /// The key as it is written in its header.
    pub fn write(self, key: &str) -> String {
        match self {
            Self::Bare => key.to_owned(),
            Self::Quoted => format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    }
}
