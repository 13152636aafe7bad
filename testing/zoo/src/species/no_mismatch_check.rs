//! Replays to whatever comes with the key, another amount included.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "no-mismatch-check",
    "replays to whatever comes with the key, another amount included",
    &["V05"],
    || Arc::new(NoMismatchCheck),
);

#[derive(Debug)]
struct NoMismatchCheck;

impl Conduct for NoMismatchCheck {
    fn fingerprint(&self, _submission: &Submission) -> String {
        String::new()
    }
}
