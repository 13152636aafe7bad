//! Tells a duplicate 409 and not when to come again.

use crate::{Conduct, PlainResponse, Species};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "conflict-without-retry-after",
    "tells a duplicate 409 and not when to come again",
    &["V14", "V16"],
    || Arc::new(ConflictWithoutRetryAfter),
);

#[derive(Debug)]
struct ConflictWithoutRetryAfter;

impl Conduct for ConflictWithoutRetryAfter {
    fn in_flight(&self) -> PlainResponse {
        PlainResponse::problem(409, "in flight")
    }
}
