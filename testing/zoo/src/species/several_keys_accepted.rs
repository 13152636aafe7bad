//! Takes the first of several keys in one request and passes over the others.

use http::HeaderMap;
use std::sync::Arc;

use crate::{Conduct, PlainResponse, Species, submission};

pub(super) const SPECIES: Species = Species::broken(
    "several-keys-accepted",
    "takes the first of several keys in one request and passes over the others",
    &["V20"],
    || Arc::new(SeveralKeysAccepted),
);

#[derive(Debug)]
struct SeveralKeysAccepted;

impl Conduct for SeveralKeysAccepted {
    fn key(&self, headers: &HeaderMap) -> Result<String, PlainResponse> {
        let mut headers = headers.clone();
        if let Some(first) = headers.remove("idempotency-key") {
            headers.insert("idempotency-key", first);
        }
        submission::key(&headers)
    }
}
