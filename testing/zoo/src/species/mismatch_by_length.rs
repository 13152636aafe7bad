//! Takes two bodies for the same where they are of one length.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "mismatch-by-length",
    "takes two bodies for the same where they are of one length",
    &["V05"],
    || Arc::new(MismatchByLength),
);

#[derive(Debug)]
struct MismatchByLength;

impl Conduct for MismatchByLength {
    fn fingerprint(&self, submission: &Submission) -> String {
        submission.body.len().to_string()
    }
}
