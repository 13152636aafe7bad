//! Writes the key in a step of its own after the effect: what fails between them is done again.

use futures_util::future::BoxFuture;
use std::sync::Arc;

use crate::{Conduct, Enclosure, HandlerRun, Species, Submission, file::StateLine};

pub(super) const SPECIES: Species = Species::broken(
    "key-stored-after-effect",
    "writes the key in a step of its own after the effect: what fails between them is done again",
    &["V24", "V18", "V23"],
    || Arc::new(KeyStoredAfterEffect),
)
.about_restarts();

#[derive(Debug)]
struct KeyStoredAfterEffect;

impl Conduct for KeyStoredAfterEffect {
    fn execute<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, HandlerRun> {
        Box::pin(async move {
            enclosure.pause().await;
            let run = enclosure.effect(submission, None);
            enclosure.pause().await;
            run
        })
    }

    fn settle(&self, enclosure: &Enclosure, submission: &Submission, run: &HandlerRun) {
        let name = submission.name();
        if run.now.status != 201 {
            return enclosure.keys.forget(&name);
        }
        if let Some(response) = run.later.clone() {
            enclosure.keys.finish(&name, response.clone());
            let (key, fingerprint) = (Some(name), Some(submission.text()));
            let response = Some(response);
            enclosure.write(&StateLine { key, fingerprint, response, effect: None });
        }
    }
}
