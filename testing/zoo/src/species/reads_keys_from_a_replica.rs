//! Looks for answers in a replica that is behind: a retry at once finds none.

use std::{sync::Arc, time::Duration};

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission};

pub(super) const SPECIES: Species = Species::broken(
    "reads-keys-from-a-replica",
    "looks for answers in a replica that is behind: a retry at once finds none",
    &["V01"],
    || Arc::new(ReadsKeysFromAReplica),
);

const BEHIND: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct ReadsKeysFromAReplica;

impl Conduct for ReadsKeysFromAReplica {
    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        // What is running is locked in the primary. What has ended is read where it is not yet.
        let name = submission.name();
        let mut keys = enclosure.keys.all();
        let is_new = |key: &KnownKey| key.response.is_some() && key.age() < BEHIND;
        if keys.get(&name).is_some_and(is_new) {
            keys.remove(&name);
        }
        drop(keys);
        let key = KnownKey::claimed(submission.text(), submission.connection);
        enclosure.keys.claim(&name, key)
    }
}
