//! Writes that a key is running, and believes it for ever after it was killed.

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission, file::StateLine};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "stuck-after-kill",
    "writes that a key is running, and believes it for ever after it was killed",
    &["V23"],
    || Arc::new(StuckAfterKill),
)
.about_restarts();

#[derive(Debug)]
struct StuckAfterKill;

impl Conduct for StuckAfterKill {
    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        let (name, fingerprint) = (submission.name(), submission.text());
        let key = KnownKey::claimed(fingerprint.clone(), submission.connection);
        let found = enclosure.keys.claim(&name, key);
        if matches!(found, KeyFound::Free) {
            let (key, fingerprint) = (Some(name), Some(fingerprint));
            enclosure.write(&StateLine { key, fingerprint, ..StateLine::default() });
        }
        found
    }

    fn restore(&self, enclosure: &Enclosure, line: StateLine) {
        if let (Some(name), Some(fingerprint)) = (line.key, line.fingerprint) {
            let mut key = KnownKey::claimed(fingerprint, 0);
            key.response = line.response;
            enclosure.keys.put(&name, key);
        }
    }
}
