//! Replays the cookie of the first answer to whoever asks later.

use crate::{Conduct, Enclosure, HandlerRun, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "stores-cookie",
    "replays the cookie of the first answer to whoever asks later",
    &["V27"],
    || Arc::new(StoresCookie),
);

#[derive(Debug)]
struct StoresCookie;

impl Conduct for StoresCookie {
    fn settle(&self, enclosure: &Enclosure, submission: &Submission, run: &HandlerRun) {
        let name = submission.name();
        match &run.later {
            Some(_) if run.now.status == 201 => enclosure.keys.finish(&name, run.now.clone()),
            Some(response) => enclosure.keys.finish(&name, response.clone()),
            None => enclosure.keys.forget(&name),
        }
    }
}
