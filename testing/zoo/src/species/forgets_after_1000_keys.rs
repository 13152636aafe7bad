//! Remembers the last thousand keys.

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "forgets-after-1000-keys",
    "remembers the last thousand keys",
    &["V22"],
    || Arc::new(ForgetsAfter1000Keys),
);

const KEYS_MAX: usize = 1000;

#[derive(Debug)]
struct ForgetsAfter1000Keys;

impl Conduct for ForgetsAfter1000Keys {
    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        let key = KnownKey::claimed(submission.text(), submission.connection);
        let found = enclosure.keys.claim(&submission.name(), key);
        let mut keys = enclosure.keys.all();
        if keys.len() > KEYS_MAX {
            let ended = keys.iter().filter(|(_, key)| key.response.is_some());
            let oldest = ended.max_by_key(|(_, key)| key.age()).map(|(name, _)| name.clone());
            oldest.and_then(|name| keys.remove(&name));
        }
        found
    }
}
