//! Has two instances with one ledger, of which each knows only its own keys.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "keys-per-instance",
    "has two instances with one ledger, of which each knows only its own keys",
    &["V04"],
    || Arc::new(KeysPerInstance),
);

#[derive(Debug)]
struct KeysPerInstance;

impl Conduct for KeysPerInstance {
    fn name(&self, submission: &Submission) -> String {
        format!("{} {}", submission.instance, submission.name())
    }
}
