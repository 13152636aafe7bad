//! Replays what was 201 as 200.

use crate::{Conduct, PlainResponse, Species};
use std::sync::Arc;

pub(super) const SPECIES: Species =
    Species::broken("replay-with-other-status", "replays what was 201 as 200", &["V01"], || {
        Arc::new(ReplayWithOtherStatus)
    });

#[derive(Debug)]
struct ReplayWithOtherStatus;

impl Conduct for ReplayWithOtherStatus {
    fn replay(&self, mut kept: PlainResponse) -> PlainResponse {
        kept.status = 200;
        kept.with("idempotent-replayed", "true").with("cache-control", "no-store")
    }
}
