//! Keeps a failure that had no effect as the answer, for ever.

use crate::{Conduct, Enclosure, HandlerRun, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "stores-500",
    "keeps a failure that had no effect as the answer, for ever",
    &["V18"],
    || Arc::new(Stores500),
);

#[derive(Debug)]
struct Stores500;

impl Conduct for Stores500 {
    fn settle(&self, enclosure: &Enclosure, submission: &Submission, run: &HandlerRun) {
        let kept = match run.now.status {
            201 => run.later.as_ref(),
            _ => Some(&run.now),
        };
        if let Some(kept) = kept {
            enclosure.keys.finish(&submission.name(), kept.clone());
        }
    }
}
