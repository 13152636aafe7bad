//! Crashes when the same JSON comes in another order.

use futures_util::future::BoxFuture;
use std::{future::ready, sync::Arc};

use serde_json::Value;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, conduct::answer};

pub(super) const SPECIES: Species = Species::broken(
    "reordered-json-500",
    "crashes when the same JSON comes in another order",
    &["V06"],
    || Arc::new(ReorderedJson500),
);

#[derive(Debug)]
struct ReorderedJson500;

impl Conduct for ReorderedJson500 {
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        let known = enclosure.keys.all().get(&submission.name()).map(|key| key.fingerprint.clone());
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        let text = submission.text();
        match known {
            Some(known) if known != text && value(&known) == value(&text) => {
                Box::pin(ready(PlainResponse::problem(500, "assertion failed: hashes are equal")))
            }
            Some(_) | None => Box::pin(answer(self, enclosure, submission)),
        }
    }
}
