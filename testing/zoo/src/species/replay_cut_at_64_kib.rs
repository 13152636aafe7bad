//! Keeps 64 KiB of an answer in its column, and replays so much of it.

use crate::{Conduct, PlainResponse, Species};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "replay-cut-at-64-kib",
    "keeps 64 KiB of an answer in its column, and replays so much of it",
    &["V28"],
    || Arc::new(ReplayCutAt64Kib),
);

#[derive(Debug)]
struct ReplayCutAt64Kib;

impl Conduct for ReplayCutAt64Kib {
    fn replay(&self, mut kept: PlainResponse) -> PlainResponse {
        kept.text.truncate(64 * 1024);
        kept.with("idempotent-replayed", "true").with("cache-control", "no-store")
    }
}
