//! Replays headers that were about one connection to its upstream.

use crate::{Conduct, PlainResponse, Species};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "stores-hop-by-hop",
    "replays headers that were about one connection to its upstream",
    &["V27"],
    || Arc::new(StoresHopByHop),
);

#[derive(Debug)]
struct StoresHopByHop;

impl Conduct for StoresHopByHop {
    fn replay(&self, kept: PlainResponse) -> PlainResponse {
        let kept = kept.with("keep-alive", "timeout=5, max=997").with("x-upstream", "10.0.0.7");
        let kept = kept.with("connection", "keep-alive, x-upstream");
        kept.with("idempotent-replayed", "true").with("cache-control", "no-store")
    }
}
