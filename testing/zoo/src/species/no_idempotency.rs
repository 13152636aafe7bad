//! Takes every request for a new one.

use futures_util::future::BoxFuture;
use std::sync::Arc;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission};

pub(super) const SPECIES: Species =
    Species::broken("no-idempotency", "takes every request for a new one", &["V01"], || {
        Arc::new(NoIdempotency)
    });

#[derive(Debug)]
struct NoIdempotency;

impl Conduct for NoIdempotency {
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(async move {
            enclosure.pause().await;
            enclosure.effect(submission, None).now
        })
    }
}
