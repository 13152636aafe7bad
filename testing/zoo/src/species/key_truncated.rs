//! Keeps the first 36 characters of a key, so that two long ones are one.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "key-truncated",
    "keeps the first 36 characters of a key, so that two long ones are one",
    &["V20"],
    || Arc::new(KeyTruncated),
);

#[derive(Debug)]
struct KeyTruncated;

impl Conduct for KeyTruncated {
    fn name(&self, submission: &Submission) -> String {
        let key: String = submission.key.chars().take(36).collect();
        format!("{} {} {key}", submission.principal, submission.path)
    }
}
