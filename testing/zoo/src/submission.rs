//! A request that was posted, read whole.

use bytes::Bytes;
use http::{HeaderMap, Version, header::AUTHORIZATION, request};
use serde::Deserialize;
use serde_json::json;

use crate::{effects::Effect, response::PlainResponse};

const KEY_BYTES_MAX: usize = 255;
const REPORT_BYTES: usize = 1024 * 1024;

/// What was posted, and what has been found out about it.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    /// Where: `/payments`.
    pub(crate) path: String,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// How it came.
    pub(crate) version: Version,
    /// Its body.
    pub(crate) body: Bytes,
    /// Which connection it came on.
    pub(crate) connection: u64,
    /// Which of the server's addresses it came to.
    pub(crate) instance: usize,
    /// Who asks; empty until that is known.
    pub(crate) principal: String,
    /// The key; empty until that is known.
    pub(crate) key: String,
}

/// A request, read whole.
#[derive(Debug)]
pub(crate) struct WholeRequest {
    pub(crate) head: request::Parts,
    pub(crate) body: Bytes,
    pub(crate) connection: u64,
    pub(crate) instance: usize,
}

/// What a client wants.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WantedEffect {
    /// How much.
    pub(crate) amount: u64,
    /// What the client calls it.
    #[serde(rename = "ref")]
    pub(crate) marker: String,
}

impl Submission {
    pub(crate) fn new(request: WholeRequest) -> Self {
        let WholeRequest { head, body, connection, instance } = request;
        Self {
            path: head.uri.path().to_owned(),
            headers: head.headers,
            version: head.version,
            body,
            connection,
            instance,
            principal: String::new(),
            key: String::new(),
        }
    }

    /// The kind of effect: its path without the slash.
    pub(crate) fn kind(&self) -> &str {
        self.path.trim_start_matches('/')
    }

    /// Its key, as that of who asks and of the path.
    pub(crate) fn name(&self) -> String {
        format!("{} {} {}", self.principal, self.path, self.key)
    }

    /// Its body.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What is wanted.
    pub(crate) fn order(&self) -> Result<WantedEffect, PlainResponse> {
        let unreadable = |_| PlainResponse::problem(400, "the body is not what is posted here");
        serde_json::from_slice(&self.body).map_err(unreadable)
    }

    /// The answer to who had this effect.
    pub(crate) fn created(&self, effect: &Effect) -> PlainResponse {
        let Effect { id, marker, amount, .. } = effect;
        let mut text = format!(r#"{{"id":"{id}","ref":{},"amount":{amount}"#, json!(marker));
        if effect.kind == "reports" {
            text.push_str(r#","rows":""#);
            text.push_str(&"0123456789abcdef".repeat(REPORT_BYTES.div_ceil(16)));
            text.truncate(REPORT_BYTES - 2);
            text.push('"');
        }
        text.push('}');
        PlainResponse::new(201, text).with("location", format!("{}/{id}", self.path))
    }
}

/// Who asks, by the token that is shown.
pub(crate) fn principal(headers: &HeaderMap) -> Result<String, PlainResponse> {
    match token(headers) {
        Some(name @ ("alice" | "bob")) => Ok(name.to_owned()),
        _ => Err(PlainResponse::problem(401, "who is asking?").with("www-authenticate", "Bearer")),
    }
}

/// The token that is shown, whoever has it.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// The one key of a request, bare or as a string of structured fields.
pub(crate) fn key(headers: &HeaderMap) -> Result<String, PlainResponse> {
    let refused = |what| PlainResponse::problem(400, what);
    let mut values = headers.get_all("idempotency-key").iter();
    let value = values.next().ok_or_else(|| refused("a key is missing"))?;
    if values.next().is_some() {
        return Err(refused("there are several keys"));
    }
    let text = value.to_str().map_err(|_| refused("the key is not ASCII"))?;
    let key = match text.strip_prefix('"') {
        Some(quoted) => unquoted(quoted),
        None => text.bytes().all(|byte| byte.is_ascii_graphic()).then(|| text.to_owned()),
    };
    let key = key.ok_or_else(|| refused("the key is malformed"))?;
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(refused("the key is empty or too long"));
    }
    Ok(key)
}

fn unquoted(quoted: &str) -> Option<String> {
    let (mut key, mut rest) = (String::new(), quoted.chars());
    loop {
        match rest.next()? {
            '"' => return rest.next().is_none().then_some(key),
            '\\' => key.push(rest.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            plain if plain == ' ' || plain.is_ascii_graphic() => key.push(plain),
            _ => return None,
        }
    }
}
