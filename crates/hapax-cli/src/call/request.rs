//! What to send, put together from what was typed. Nothing has been sent when this fails.

use std::{
    env,
    fs::File,
    io::{self, Read},
};

use bytes::Bytes;
use hapax::{
    Key,
    client::{
        Call, ClientBuilder, RetryOptions,
        journal::{JournalEntry, is_credential},
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header::CONTENT_TYPE};
use serde::de::IgnoredAny;

use super::error::CallFailure;
use crate::args::CallArgs;

/// A request.
pub(super) struct CallRequest {
    pub(super) method: Method,
    pub(super) url: Uri,
    headers: HeaderMap,
    secrets: Secrets,
    body: Bytes,
}

/// Headers from the environment, which the journal never sees.
pub(super) struct Secrets(Vec<(HeaderName, HeaderValue)>);

impl CallRequest {
    pub(super) fn of(args: &CallArgs, (method, url): (&Method, &Uri)) -> Result<Self, CallFailure> {
        let secrets = Secrets::of(args)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &args.request.header {
            if is_credential(name) && !secrets.0.is_empty() {
                return Err(CallFailure::MixedCredentials { header: name.clone() });
            }
            headers.append(name, value.clone());
        }
        let body = match (args.request.json.as_deref(), &args.request.data) {
            (Some([]), _) => return Err(CallFailure::JsonMissing),
            (Some([said, ..]), _) => {
                let body = read(said)?;
                serde_json::from_slice::<IgnoredAny>(&body).map_err(CallFailure::NotJson)?;
                let json = HeaderValue::from_static("application/json");
                headers.entry(CONTENT_TYPE).or_insert(json);
                body
            }
            (None, Some(said)) => read(said)?,
            (None, None) => Bytes::new(),
        };
        Ok(Self { method: method.clone(), url: url.clone(), headers, secrets, body })
    }

    /// Says to a call what is sent with it. Credentials are kept unless there is a better place.
    pub(super) fn dress(&self, call: Call) -> Call {
        let mut headers = self.headers.clone();
        headers.extend(self.secrets.0.iter().cloned());
        let call = call.headers(headers).body(self.body.clone());
        if self.secrets.0.is_empty() { call.keep_credentials() } else { call }
    }

    /// In what this differs from what the journal has under the same name; `None` if in nothing.
    pub(super) fn differs(&self, key: Option<&Key>, entry: &JournalEntry) -> Option<String> {
        let kept = &entry.request;
        let kind = |headers: &HeaderMap| headers.get(CONTENT_TYPE).cloned();
        let parts = [
            ("its method", kept.method() != self.method),
            ("its URL", *kept.url() != self.url),
            ("its content type", kind(kept.headers()) != kind(&self.headers)),
            ("its body", *kept.body() != self.body),
            ("its key", key.is_some_and(|key| *key != entry.key)),
        ];
        let differ: Vec<_> = parts.iter().filter(|(_, differs)| *differs).collect();
        let names: Vec<_> = differ.iter().map(|(part, _)| *part).collect();
        (!names.is_empty()).then(|| format!("{} differs", names.join(", ")))
    }
}

impl Secrets {
    pub(super) fn of(args: &CallArgs) -> Result<Self, CallFailure> {
        let read = |(name, variable): &(HeaderName, String)| {
            let value = env::var(variable).ok().filter(|value| !value.is_empty());
            let value = value.and_then(|value| HeaderValue::try_from(value).ok());
            let mut value =
                value.ok_or_else(|| CallFailure::Variable { variable: variable.clone() })?;
            value.set_sensitive(true);
            Ok((name.clone(), value))
        };
        args.request.header_env.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Lets a client send them with everything: what is resumed was journalled without them.
    pub(super) fn give(self, mut client: ClientBuilder) -> ClientBuilder {
        for (name, value) in self.0 {
            client = client.header(name, value);
        }
        client
    }
}

/// Text as it is, what is in a file after `@`, or standard input for `-`.
fn read(said: &str) -> Result<Bytes, CallFailure> {
    let failed = |from: &str| {
        let from = from.to_owned();
        |source| CallFailure::Body { from, source }
    };
    let max = RetryOptions::default().request_bytes_max;
    let body = match (said, said.strip_prefix('@')) {
        ("-", _) | (_, Some("-")) => {
            at_most(io::stdin().lock(), max).map_err(failed("standard input"))?
        }
        (_, Some(path)) => {
            let file = File::open(path).map_err(failed(path))?;
            at_most(file, max).map_err(failed(path))?
        }
        (text, None) => text.as_bytes().to_vec(),
    };
    if body.len() > max { Err(CallFailure::TooLarge { max }) } else { Ok(body.into()) }
}

/// All there is, or one byte more than the limit.
fn at_most(source: impl Read, max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    source.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
