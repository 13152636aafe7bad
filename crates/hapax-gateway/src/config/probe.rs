//! Asking the upstream whether something happened, by an address made from the key.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_tower::{Hosts, ProbeAnswer, ProbeRequest, Prober, signal};
use http::{
    HeaderValue, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, HOST},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    admin::UpstreamExchange,
    client::{SendError, UpstreamClient},
    telemetry::ClientSpan,
};

/// A path with places for the key and for the path of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Key,
    Path,
}

/// Everything but what RFC 3986 calls unreserved.
pub(crate) const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How an answer is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerReading {
    /// Largest body, in bytes.
    pub(super) bytes_max: usize,
    /// How long it may take.
    pub(super) within: Duration,
    /// The status of what happened, where it is not the probe's own.
    pub(super) status: Option<StatusCode>,
    /// Whether the host that the operation was for is the one to ask.
    pub(super) hosts: Hosts,
}

impl Template {
    /// Reads `/payments/by-key/{key}` or `{path}/{key}`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let advice = "write a path, such as \"/payments/by-key/{key}\", instead";
        let refuse = |why: &str| Err(format!("cannot be {text:?}, {why}; {advice}"));
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return refuse("where a brace stays open");
            };
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(match name {
                "key" => Piece::Key,
                "path" => Piece::Path,
                _ => return refuse("where only {key} and {path} are known"),
            });
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        if !pieces.contains(&Piece::Key) {
            return refuse("where {key} is missing");
        }
        let template = Self(pieces);
        let filled = template.filled("key", "/path");
        if !filled.starts_with('/') || Uri::try_from(&filled).is_err() || filled.contains('#') {
            return refuse("which is no path of the upstream");
        }
        Ok(template)
    }

    fn filled(&self, key: &str, path: &str) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Key => utf8_percent_encode(key, RESERVED).to_string(),
            Piece::Path => path.to_owned(),
        });
        pieces.collect()
    }

    /// Asks the upstream with GET: 202, 409 and 425 mean that it is still at work, any other 2xx is the
    /// answer of the operation, 404 and 410 mean that it did not happen, and everything else that
    /// nobody knows.
    pub(super) fn prober(self, client: UpstreamClient, reading: AnswerReading) -> Prober {
        let template = Arc::new(self);
        Prober::from_fn(move |asked| {
            let (template, client) = (Arc::clone(&template), client.clone());
            async move { template.ask(&client, &asked, reading).await }
        })
    }

    async fn ask(
        &self,
        client: &UpstreamClient,
        asked: &ProbeRequest,
        reading: AnswerReading,
    ) -> ProbeAnswer {
        let key = asked.operation.key().as_str();
        // Such a segment means another path, however it is written.
        if matches!(key, "." | "..") {
            return ProbeAnswer::Unknown;
        }
        let target = self.filled(key, asked.request.uri().path());
        let Ok(target) = Uri::try_from(target) else { return ProbeAnswer::Unknown };
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = target;
        for name in [ACCEPT, AUTHORIZATION] {
            for line in asked.request.headers().get_all(&name) {
                request.headers_mut().append(&name, line.clone());
            }
        }
        if reading.hosts == Hosts::Apart
            && let Some(host) = host_of(&asked.request)
        {
            request.headers_mut().insert(HOST, host);
        }
        // Whoever asks also asks again.
        signal::set_retried_further_out(request.headers_mut());
        let operation = asked.operation.id();
        let span = ClientSpan::probe(&asked.request, &mut request, client.authority(), operation);
        let fetched = client.fetch(request, reading.bytes_max, reading.within).await;
        if let Some(span) = span {
            span.end(Some(match &fetched {
                Ok(answer) => UpstreamExchange::Answered(answer.status()),
                Err(SendError::NothingSent(_)) => UpstreamExchange::NothingSent,
                Err(SendError::Unanswered(_)) => UpstreamExchange::Unanswered,
            }));
        }
        match fetched {
            Ok(mut answer) => match answer.status() {
                StatusCode::ACCEPTED | StatusCode::CONFLICT | StatusCode::TOO_EARLY => {
                    ProbeAnswer::AtWork
                }
                status if status.is_success() => {
                    *answer.status_mut() = reading.status.unwrap_or(status);
                    ProbeAnswer::Happened(answer)
                }
                StatusCode::NOT_FOUND | StatusCode::GONE => ProbeAnswer::DidNotHappen,
                status => {
                    tracing::warn!(%operation, %status, "the upstream does not say whether it happened");
                    ProbeAnswer::Unknown
                }
            },
            Err(error) => {
                tracing::warn!(%operation, %error, "the upstream cannot be asked whether it happened");
                ProbeAnswer::Unknown
            }
        }
    }
}

/// The host a request was for, which is the one that knows about it.
fn host_of<B>(request: &Request<B>) -> Option<HeaderValue> {
    let named = request.headers().get(HOST).cloned();
    let target = || HeaderValue::try_from(request.uri().authority()?.as_str()).ok();
    named.or_else(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_changes_which_address_is_asked() {
        let template = Template::parse("{path}/by-key/{key}?full=1").unwrap();
        let filled = template.filled("a/../b?c=d#e%", "/payments");
        assert_eq!(filled, "/payments/by-key/a%2F..%2Fb%3Fc%3Dd%23e%25?full=1");
    }

    #[test]
    fn what_is_no_address_with_a_key_is_refused() {
        for text in
            ["", "/a", "a/{key}", "/{key", "/{id}/{key}", "/ü /{key}", "http://x/{key}", "/{key}#x"]
        {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
