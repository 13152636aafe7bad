//! Stops with the connection of its client, and leaves the key as running.

use crate::{Conduct, Species};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "stuck-after-disconnect",
    "stops with the connection of its client, and leaves the key as running",
    &["V11", "V15"],
    || Arc::new(StuckAfterDisconnect),
);

#[derive(Debug)]
struct StuckAfterDisconnect;

impl Conduct for StuckAfterDisconnect {
    fn is_detached(&self) -> bool {
        false
    }
}
