//! How the provider treats the next charges.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// How a request for a charge is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mood {
    /// Charges, and says so.
    Behave,
    /// Never answers, and does not charge.
    Hang,
    /// Fails, and does not charge.
    FailBefore,
    /// Charges, and says that it failed.
    FailAfter,
    /// Charges, and says so when nobody listens any more.
    Late,
    /// Charges, and the connection breaks before the answer is out.
    Lose,
    /// Says no.
    Decline,
}

/// What it was told to do with the next requests, one after the other; then it behaves.
#[derive(Debug, Default)]
pub(crate) struct Moods(Mutex<VecDeque<Mood>>);

impl Moods {
    pub(crate) fn expect(&self, moods: Vec<Mood>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(moods);
    }

    pub(crate) fn next(&self) -> Mood {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.unwrap_or(Mood::Behave)
    }
}
