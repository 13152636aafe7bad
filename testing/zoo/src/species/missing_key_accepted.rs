//! Runs a request without a key as if none were needed.

use http::HeaderMap;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{Conduct, PlainResponse, Species, submission};

pub(super) const SPECIES: Species = Species::broken(
    "missing-key-accepted",
    "runs a request without a key as if none were needed",
    &["V19"],
    || Arc::new(MissingKeyAccepted::default()),
);

#[derive(Debug, Default)]
struct MissingKeyAccepted {
    unnamed: AtomicU64,
}

impl Conduct for MissingKeyAccepted {
    fn key(&self, headers: &HeaderMap) -> Result<String, PlainResponse> {
        if headers.contains_key("idempotency-key") {
            return submission::key(headers);
        }
        Ok(format!("none {}", self.unnamed.fetch_add(1, Ordering::Relaxed)))
    }
}
