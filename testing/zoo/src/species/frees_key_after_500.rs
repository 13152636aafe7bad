//! Frees the key after every failure, also where the effect was there before it.

use crate::{Conduct, Enclosure, HandlerRun, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "frees-key-after-500",
    "frees the key after every failure, also where the effect was there before it",
    &["V18"],
    || Arc::new(FreesKeyAfter500),
);

#[derive(Debug)]
struct FreesKeyAfter500;

impl Conduct for FreesKeyAfter500 {
    fn settle(&self, enclosure: &Enclosure, submission: &Submission, run: &HandlerRun) {
        let name = submission.name();
        match &run.later {
            Some(response) if run.now.status < 500 => {
                enclosure.keys.finish(&name, response.clone())
            }
            Some(_) | None => enclosure.keys.forget(&name),
        }
    }
}
