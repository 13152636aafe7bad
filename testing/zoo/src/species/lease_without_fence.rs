//! Takes a key over from who is slow, and lets both act and both write the answer.

use std::{sync::Arc, time::Duration};

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission};

pub(super) const SPECIES: Species = Species::broken(
    "lease-without-fence",
    "takes a key over from who is slow, and lets both act and both write the answer",
    &["V14", "V16"],
    || Arc::new(LeaseWithoutFence),
);

const LEASE: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct LeaseWithoutFence;

impl Conduct for LeaseWithoutFence {
    fn delay(&self) -> Duration {
        2 * LEASE
    }

    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        let name = submission.name();
        let key = KnownKey::claimed(submission.text(), submission.connection);
        let found = enclosure.keys.claim(&name, key.clone());
        let is_overdue = |key: &KnownKey| key.age() >= LEASE;
        let is_taken_over = matches!(found, KeyFound::Running)
            && enclosure.keys.all().get(&name).is_some_and(is_overdue);
        if is_taken_over {
            enclosure.keys.put(&name, key);
            return KeyFound::Free;
        }
        found
    }
}
