//! Sets a marker and keeps no result: a retry hears for ever that it is a duplicate.

use crate::{Conduct, Enclosure, HandlerRun, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "marker-without-result",
    "sets a marker and keeps no result: a retry hears for ever that it is a duplicate",
    &["V01", "V25"],
    || Arc::new(MarkerWithoutResult),
);

#[derive(Debug)]
struct MarkerWithoutResult;

impl Conduct for MarkerWithoutResult {
    fn settle(&self, enclosure: &Enclosure, submission: &Submission, run: &HandlerRun) {
        // As after `SET key 1 NX`: there is nothing that an answer could be written into.
        if run.later.is_none() {
            enclosure.keys.forget(&submission.name());
        }
    }
}
