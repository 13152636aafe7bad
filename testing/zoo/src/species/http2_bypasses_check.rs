//! Has its check in front of HTTP/1.1 alone.

use futures_util::future::BoxFuture;
use http::Version;
use std::sync::Arc;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, conduct::answer};

pub(super) const SPECIES: Species = Species::broken(
    "http2-bypasses-check",
    "has its check in front of HTTP/1.1 alone",
    &["V03"],
    || Arc::new(Http2BypassesCheck),
);

#[derive(Debug)]
struct Http2BypassesCheck;

impl Conduct for Http2BypassesCheck {
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        if submission.version != Version::HTTP_2 {
            return Box::pin(answer(self, enclosure, submission));
        }
        Box::pin(async move {
            enclosure.pause().await;
            enclosure.effect(submission, None).now
        })
    }
}
