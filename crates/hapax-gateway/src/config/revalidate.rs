//! Asking the upstream whether a caller may still hear what is stored for it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_tower::{Caller, Hosts, Revalidated, Revalidator};
use http::{
    HeaderMap, HeaderName, Request, StatusCode, Uri,
    header::{EXPECT, RANGE},
};

use crate::{client::UpstreamClient, proxy::prepare, tenant::original};

/// Most bytes of a refusal that are passed on.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// What is asked, and how.
pub(super) struct Revalidation {
    /// The path and query that are asked for.
    pub(super) target: Uri,
    /// Whether the upstream sees the `Host` the caller sent.
    pub(super) hosts: Hosts,
    /// The header of the route that carries the key; the question has none.
    pub(super) key_header: HeaderName,
    /// How long the answer may take.
    pub(super) within: Duration,
}

/// Reads `/me`, or `GET /me`.
pub(super) fn target(text: &str) -> Result<Uri, String> {
    let path = text.strip_prefix("GET ").unwrap_or(text);
    let target = Uri::try_from(path).ok().filter(|_| path.starts_with('/') && !path.contains('#'));
    let advice = "write a path of the upstream, such as \"/me\", instead";
    target.ok_or_else(|| format!("cannot be {text:?}; {advice}"))
}

impl Revalidation {
    /// Asks the upstream with GET, as the caller itself would: 2xx means that it may hear, 401 and
    /// 403 are told to it, and everything else means that nobody knows.
    pub(super) fn revalidator(self, client: UpstreamClient) -> Revalidator {
        let question = Arc::new(self);
        Revalidator::from_fn(move |caller| {
            let (question, client) = (Arc::clone(&question), client.clone());
            async move { question.ask(&client, caller).await }
        })
    }

    async fn ask(&self, client: &UpstreamClient, caller: Caller) -> Revalidated {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.target.clone();
        let original = original(&caller);
        *request.headers_mut() = self.about_the_caller(caller.headers);
        *request.extensions_mut() = caller.extensions;
        let host = (self.hosts == Hosts::Alike).then(|| client.authority());
        prepare(&mut request, host);
        request.headers_mut().extend(original.into_iter().flatten());
        match client.fetch(request, REFUSAL_BYTES_MAX, self.within).await {
            Ok(answer) if answer.status().is_success() => Revalidated::May,
            Ok(answer) => match answer.status() {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Revalidated::Refused(answer),
                status => {
                    tracing::warn!(%status, "the upstream does not say whether a caller still may");
                    Revalidated::CannotAsk
                }
            },
            Err(error) => {
                tracing::warn!(%error, "the upstream cannot be asked whether a caller still may");
                Revalidated::CannotAsk
            }
        }
    }

    /// The headers of a request without those that speak of its body, its key or an answer.
    fn about_the_caller(&self, mut headers: HeaderMap) -> HeaderMap {
        let is_about_the_request = |name: &&HeaderName| {
            let starts = |start| name.as_str().starts_with(start);
            [&EXPECT, &RANGE, &self.key_header].contains(name)
                || ["content-", "if-", "prefer", "repeatability-"].into_iter().any(starts)
        };
        let dropped: Vec<_> = headers.keys().filter(is_about_the_request).cloned().collect();
        for name in dropped {
            headers.remove(name);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_a_path_of_the_upstream() {
        assert_eq!(target("/me?full=1").unwrap(), "/me?full=1");
        assert_eq!(target("GET /me").unwrap(), "/me");
        for text in ["", "me", "POST /me", "http://other/me", "/me#x", "/m e"] {
            assert!(target(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whoever_is_asked_hears_of_the_caller_and_not_of_the_request() {
        let revalidation = Revalidation {
            target: Uri::from_static("/me"),
            hosts: Hosts::Alike,
            key_header: HeaderName::from_static("x-key"),
            within: Duration::from_secs(1),
        };
        let request = Request::post("/pay")
            .header("authorization", "alice")
            .header("x-account", "7")
            .header("content-length", "3")
            .header("content-type", "text/plain")
            .header("if-match", "*")
            .header("x-key", "k-1")
            .header("prefer", "wait=1")
            .body(())
            .unwrap();
        let kept = revalidation.about_the_caller(request.headers().clone());
        let mut names: Vec<_> = kept.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["authorization", "x-account"]);
    }
}
