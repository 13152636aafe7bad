//! Compares keys as some databases do, without regard to case.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "key-case-folded",
    "compares keys as some databases do, without regard to case",
    &["V21"],
    || Arc::new(KeyCaseFolded),
);

#[derive(Debug)]
struct KeyCaseFolded;

impl Conduct for KeyCaseFolded {
    fn name(&self, submission: &Submission) -> String {
        submission.name().to_lowercase()
    }
}
