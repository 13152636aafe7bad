//! Takes the key before it reads the body, and refuses the corrected one for ever.

use crate::{Conduct, Enclosure, HandlerRun, PlainResponse, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "invalid-body-burns-key",
    "takes the key before it reads the body, and refuses the corrected one for ever",
    &["V17"],
    || Arc::new(InvalidBodyBurnsKey),
);

#[derive(Debug)]
struct InvalidBodyBurnsKey;

impl Conduct for InvalidBodyBurnsKey {
    fn validate(&self, _submission: &Submission) -> Result<(), PlainResponse> {
        Ok(())
    }

    fn settle(&self, enclosure: &Enclosure, submission: &Submission, run: &HandlerRun) {
        match &run.later {
            Some(response) => enclosure.keys.finish(&submission.name(), response.clone()),
            None if run.now.status == 500 => enclosure.keys.forget(&submission.name()),
            None => enclosure.keys.finish(&submission.name(), run.now.clone()),
        }
    }
}
