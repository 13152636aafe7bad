//! Writes claims before it acts, and after a kill frees those that came to nothing.

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission, file::StateLine};
use std::sync::Arc;

pub(super) const SPECIES: Species =
    Species::correct("honest-file", || Arc::new(HonestFile)).about_restarts();

#[derive(Debug)]
struct HonestFile;

impl Conduct for HonestFile {
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
}
