//! What becomes of a dead letter, in words, and what may be done to it.

use hapax_core::inbox::{NextDelivery, StoredLetter};

use crate::admin::problem::AdminProblem;

/// What a person wants done to a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetterDeed {
    Discard,
    Forgive,
}

impl LetterDeed {
    /// What it is called once it is done.
    pub(super) fn done(self) -> &'static str {
        match self {
            Self::Discard => "discarded",
            Self::Forgive => "forgiven",
        }
    }

    /// What it would come to, or why it cannot be done.
    pub(super) fn foreseen(
        self,
        letter: &StoredLetter,
        keeps_offsets: bool,
    ) -> Result<String, AdminProblem> {
        match (self, letter.next_delivery) {
            (Self::Discard, next) => Ok(format!(
                "The letter would be removed for good, with its payload. {}",
                match next {
                    NextDelivery::IsFirst =>
                        "Nothing is remembered of its message: the next delivery is acted on, if one \
                         comes",
                    NextDelivery::Failed =>
                        "Its message stays failed: a later delivery is acknowledged and not acted on",
                    NextDelivery::Duplicate =>
                        "Its message was acted on since: a later delivery is acknowledged",
                    NextDelivery::Conflict =>
                        "What was acted on under its name stays: a later delivery is put aside again",
                }
            )),
            (Self::Forgive, NextDelivery::Failed) => Ok(forgiven(letter, keeps_offsets)),
            (Self::Forgive, NextDelivery::IsFirst) => Err(AdminProblem::nothing_to_forgive(
                "nothing is remembered of its message: the next delivery is acted on, if one comes; \
                 discard the letter if it is settled",
            )),
            (Self::Forgive, NextDelivery::Duplicate) => Err(AdminProblem::nothing_to_forgive(
                "its message was acted on since, or is held for its turn; discard the letter",
            )),
            (Self::Forgive, NextDelivery::Conflict) => Err(AdminProblem::nothing_to_forgive(
                "another message was acted on under its name, and to forget that would have it acted \
                 on again; have this one sent under a name of its own, and discard the letter",
            )),
        }
    }
}

fn forgiven(letter: &StoredLetter, keeps_offsets: bool) -> String {
    let mut words = "The letter, its failure and the count of its attempts would be forgotten, and \
                     the next delivery of its message acted on. Nothing is sent from here: have its \
                     sender or its broker deliver it again"
        .to_owned();
    if let Some(version) = letter.come_to {
        words.push_str(&format!(
            ". Its key has come to version {version}: a guard passes over what is not newer"
        ));
    }
    if keeps_offsets {
        words.push_str(
            ". This consumer goes by offsets: a delivery from a place it has passed is not acted on",
        );
    }
    words
}
