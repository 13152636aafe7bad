//! Keeps keys without whose they are, and tells one client the answer of another.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "tenant-blind",
    "keeps keys without whose they are, and tells one client the answer of another",
    &["V08"],
    || Arc::new(TenantBlind),
);

#[derive(Debug)]
struct TenantBlind;

impl Conduct for TenantBlind {
    fn name(&self, submission: &Submission) -> String {
        format!("{} {}", submission.path, submission.key)
    }
}
