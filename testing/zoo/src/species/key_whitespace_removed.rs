//! Removes spaces from keys, so that two become one.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "key-whitespace-removed",
    "removes spaces from keys, so that two become one",
    &["V21"],
    || Arc::new(KeyWhitespaceRemoved),
);

#[derive(Debug)]
struct KeyWhitespaceRemoved;

impl Conduct for KeyWhitespaceRemoved {
    fn name(&self, submission: &Submission) -> String {
        let key = submission.key.replace(' ', "");
        format!("{} {} {key}", submission.principal, submission.path)
    }
}
