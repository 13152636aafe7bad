//! Frees the key when its client has not taken the whole answer.

use crate::{Conduct, Enclosure, Species, Submission, conduct::identify};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "freed-when-answer-untaken",
    "frees the key when its client has not taken the whole answer",
    &["V12"],
    || Arc::new(FreedWhenAnswerUntaken),
);

#[derive(Debug)]
struct FreedWhenAnswerUntaken;

impl Conduct for FreedWhenAnswerUntaken {
    fn left_untaken(&self, enclosure: &Enclosure, submission: &Submission) {
        let mut submission = submission.clone();
        if identify(self, &mut submission).is_ok() {
            enclosure.keys.forget(&submission.name());
        }
    }
}
