//! A request as it is asked, before it is bytes.

use bytes::Bytes;

/// A request with everything that can be changed about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExamRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers without keys, credentials, `Host` and `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// Headers that say who asks.
    pub credentials: Vec<(String, String)>,
    /// The name of the header that keys are sent in; empty where `{key}` in the body is replaced instead.
    pub key_header: String,
    /// As many values as that header is sent with, raw: one as a rule. In a body, the first one.
    pub keys: Vec<Vec<u8>>,
    /// The body.
    pub body: Bytes,
    /// By what the effect is found; empty where there is none.
    pub marker: String,
}

/// A request as it goes over HTTP/1.1.
#[derive(Debug, Clone)]
pub(crate) struct RequestBytes {
    /// All of it.
    pub(crate) bytes: Bytes,
    /// Where the body begins.
    pub(crate) body_at: usize,
}

impl ExamRequest {
    /// A GET that brings only these headers.
    pub fn get(path: &str, headers: Vec<(String, String)>) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers,
            credentials: Vec::new(),
            key_header: String::new(),
            keys: Vec::new(),
            body: Bytes::new(),
            marker: String::new(),
        }
    }

    /// The same with this value of the key's header, as it is written.
    pub fn with_key(&self, value: impl Into<Vec<u8>>) -> Self {
        Self { keys: vec![value.into()], ..self.clone() }
    }

    /// The same with that many of them.
    pub fn with_keys(&self, keys: Vec<Vec<u8>>) -> Self {
        Self { keys, ..self.clone() }
    }

    /// The same without a key.
    pub fn without_key(&self) -> Self {
        self.with_keys(Vec::new())
    }

    /// The same with another body.
    pub fn with_body(&self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self.clone() }
    }

    /// The same, asked by somebody else.
    pub fn asked_by(&self, credentials: &[(String, String)]) -> Self {
        Self { credentials: credentials.to_vec(), ..self.clone() }
    }

    /// The same at another path.
    pub fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    /// The same with one more header.
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        other.headers.push((name.to_owned(), value.to_owned()));
        other
    }

    /// All headers but `Host` and `Content-Length`, in the order in which they are sent.
    pub fn all_headers(&self) -> Vec<(String, Vec<u8>)> {
        let plain = self.headers.iter().chain(&self.credentials);
        let plain = plain.map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        let keys = self.keys.iter().filter(|_| !self.key_header.is_empty());
        plain.chain(keys.map(|key| (self.key_header.clone(), key.clone()))).collect()
    }

    /// The body as it is sent: where keys are no header, with the key in it, as text of JSON.
    pub fn sent_body(&self) -> Bytes {
        if !self.key_header.is_empty() || self.method == "GET" {
            return self.body.clone();
        }
        let key = String::from_utf8_lossy(self.keys.first().map_or(&[][..], Vec::as_slice));
        let quoted = serde_json::Value::from(key).to_string();
        let key = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        String::from_utf8_lossy(&self.body).replace("{key}", key).into()
    }

    /// As it goes over HTTP/1.1 to `authority`.
    pub(crate) fn http1(&self, authority: &str) -> RequestBytes {
        let mut bytes =
            format!("{} {} HTTP/1.1\r\nHost: {authority}\r\n", self.method, self.path).into_bytes();
        for (name, value) in self.all_headers() {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(&value);
            bytes.extend_from_slice(b"\r\n");
        }
        let body = self.sent_body();
        if self.method != "GET" || !body.is_empty() {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        let body_at = bytes.len();
        bytes.extend_from_slice(&body);
        RequestBytes { bytes: bytes.into(), body_at }
    }
}
