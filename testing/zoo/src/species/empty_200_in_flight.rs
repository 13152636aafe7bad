//! Tells a duplicate 200 and nothing else while the first is running.

use crate::{Conduct, PlainResponse, Species};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "empty-200-in-flight",
    "tells a duplicate 200 and nothing else while the first is running",
    &["V16", "V02", "V14"],
    || Arc::new(Empty200InFlight),
);

#[derive(Debug)]
struct Empty200InFlight;

impl Conduct for Empty200InFlight {
    fn in_flight(&self) -> PlainResponse {
        PlainResponse::new(200, "")
    }
}
