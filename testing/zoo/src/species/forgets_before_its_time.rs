//! Forgets keys after one second where two are promised.

use std::{sync::Arc, time::Duration};

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission};

pub(super) const SPECIES: Species = Species::broken(
    "forgets-before-its-time",
    "forgets keys after one second where two are promised",
    &["V26"],
    || Arc::new(ForgetsBeforeItsTime),
);

const FORGETS_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct ForgetsBeforeItsTime;

impl Conduct for ForgetsBeforeItsTime {
    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        let mut keys = enclosure.keys.all();
        keys.retain(|_, key| key.response.is_none() || key.age() < FORGETS_AFTER);
        drop(keys);
        let key = KnownKey::claimed(submission.text(), submission.connection);
        enclosure.keys.claim(&submission.name(), key)
    }
}
