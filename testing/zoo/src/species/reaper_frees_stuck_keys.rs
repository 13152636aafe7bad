//! Leaves the key of a crash stuck, until a reaper deletes it and the retry pays again.

use std::{sync::Arc, time::Duration};

use crate::{Conduct, Enclosure, HandlerRun, KeyFound, KnownKey, Species, Submission};

pub(super) const SPECIES: Species = Species::broken(
    "reaper-frees-stuck-keys",
    "leaves the key of a crash stuck, until a reaper deletes it and the retry pays again",
    &["V18"],
    || Arc::new(ReaperFreesStuckKeys),
);

const STUCK_AFTER: Duration = Duration::from_millis(400);

#[derive(Debug)]
struct ReaperFreesStuckKeys;

impl Conduct for ReaperFreesStuckKeys {
    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        // The reaper, whenever somebody comes by.
        let mut keys = enclosure.keys.all();
        keys.retain(|_, key| key.response.is_some() || key.age() < STUCK_AFTER);
        drop(keys);
        let key = KnownKey::claimed(submission.text(), submission.connection);
        enclosure.keys.claim(&submission.name(), key)
    }

    fn settle(&self, enclosure: &Enclosure, submission: &Submission, run: &HandlerRun) {
        if run.now.status == 500 && run.later.is_some() {
            return;
        }
        match &run.later {
            Some(response) => enclosure.keys.finish(&submission.name(), response.clone()),
            None => enclosure.keys.forget(&submission.name()),
        }
    }
}
