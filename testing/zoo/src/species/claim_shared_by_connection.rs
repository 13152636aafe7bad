//! Holds keys by locks of a connection, which that connection gets twice.

use crate::{Conduct, Enclosure, KeyFound, KnownKey, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "claim-shared-by-connection",
    "holds keys by locks of a connection, which that connection gets twice",
    &["V03"],
    || Arc::new(ClaimSharedByConnection),
);

#[derive(Debug)]
struct ClaimSharedByConnection;

impl Conduct for ClaimSharedByConnection {
    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        let name = submission.name();
        let key = KnownKey::claimed(submission.text(), submission.connection);
        let found = enclosure.keys.claim(&name, key);
        let is_ours = |key: &KnownKey| key.connection == submission.connection;
        let is_running = matches!(found, KeyFound::Running);
        if is_running && enclosure.keys.all().get(&name).is_some_and(is_ours) {
            return KeyFound::Free;
        }
        found
    }
}
