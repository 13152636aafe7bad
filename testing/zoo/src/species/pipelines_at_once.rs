//! Runs requests that come at once on a connection beside each other, under one lock.

use http::Version;
use std::sync::Arc;

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission};

pub(super) const SPECIES: Species = Species::broken(
    "pipelines-at-once",
    "runs requests that come at once on a connection beside each other, under one lock",
    &["V31"],
    || Arc::new(PipelinesAtOnce),
);

#[derive(Debug)]
struct PipelinesAtOnce;

impl Conduct for PipelinesAtOnce {
    fn runs_pipelines_at_once(&self) -> bool {
        true
    }

    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        let name = submission.name();
        let key = KnownKey::claimed(submission.text(), submission.connection);
        let found = enclosure.keys.claim(&name, key);
        let is_ours = |key: &KnownKey| {
            key.connection == submission.connection && submission.version != Version::HTTP_2
        };
        let is_running = matches!(found, KeyFound::Running);
        if is_running && enclosure.keys.all().get(&name).is_some_and(is_ours) {
            return KeyFound::Free;
        }
        found
    }
}
