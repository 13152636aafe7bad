//! Keeps with the key which way a request came, and runs what a proxy resends.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "forwarded-for-in-key",
    "keeps with the key which way a request came, and runs what a proxy resends",
    &["V32", "V30"],
    || Arc::new(ForwardedForInKey),
);

#[derive(Debug)]
struct ForwardedForInKey;

impl Conduct for ForwardedForInKey {
    fn name(&self, submission: &Submission) -> String {
        let way = |name| submission.headers.get(name);
        let way = (way("via"), way("forwarded"), way("x-forwarded-for"));
        format!("{} {way:?}", submission.name())
    }
}
