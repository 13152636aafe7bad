//! Makes a new answer for a retry, with an id that nothing has.

use crate::{Conduct, PlainResponse, Species};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

pub(super) const SPECIES: Species = Species::broken(
    "replay-with-new-id",
    "makes a new answer for a retry, with an id that nothing has",
    &["V01"],
    || Arc::new(ReplayWithNewId::default()),
);

#[derive(Debug, Default)]
struct ReplayWithNewId {
    replays: AtomicU64,
}

impl Conduct for ReplayWithNewId {
    fn replay(&self, mut kept: PlainResponse) -> PlainResponse {
        let number = self.replays.fetch_add(1, Ordering::Relaxed);
        kept.text = kept.text.replacen("_0", &format!("_{number}9"), 1);
        kept.with("idempotent-replayed", "true").with("cache-control", "no-store")
    }
}
