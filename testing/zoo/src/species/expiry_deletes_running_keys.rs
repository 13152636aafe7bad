//! Lets keys expire after 100 ms where the handler takes 200.

use std::{sync::Arc, time::Duration};

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission};

pub(super) const SPECIES: Species = Species::broken(
    "expiry-deletes-running-keys",
    "lets keys expire after 100 ms where the handler takes 200",
    &["V14", "V16"],
    || Arc::new(ExpiryDeletesRunningKeys),
);

const EXPIRES_AFTER: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct ExpiryDeletesRunningKeys;

impl Conduct for ExpiryDeletesRunningKeys {
    fn delay(&self) -> Duration {
        2 * EXPIRES_AFTER
    }

    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        // `SET key running NX PX 100`, and a key that lasts once there is an answer.
        let mut keys = enclosure.keys.all();
        keys.retain(|_, key| key.response.is_some() || key.age() < EXPIRES_AFTER);
        drop(keys);
        let key = KnownKey::claimed(submission.text(), submission.connection);
        enclosure.keys.claim(&submission.name(), key)
    }
}
