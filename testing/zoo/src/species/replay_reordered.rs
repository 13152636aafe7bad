//! Reads its kept answer as JSON and writes it again in another order.

use serde_json::{Map, Value};
use std::sync::Arc;

use crate::{Conduct, PlainResponse, Species};

pub(super) const SPECIES: Species = Species::broken(
    "replay-reordered",
    "reads its kept answer as JSON and writes it again in another order",
    &["V01"],
    || Arc::new(ReplayReordered),
);

#[derive(Debug)]
struct ReplayReordered;

impl Conduct for ReplayReordered {
    fn replay(&self, mut kept: PlainResponse) -> PlainResponse {
        let members: Map<String, Value> = serde_json::from_str(&kept.text).unwrap_or_default();
        let mut members: Vec<_> =
            members.iter().map(|(name, value)| format!(r#""{name}": {value}"#)).collect();
        members.sort();
        kept.text = format!("{{{}}}", members.join(", "));
        kept.with("idempotent-replayed", "true").with("cache-control", "no-store")
    }
}
