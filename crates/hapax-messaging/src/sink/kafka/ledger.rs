//! What is known of each event of a call.

use std::collections::HashSet;

use hapax_core::outbox::Stored;

use super::{Trouble, round::Fate};
use crate::sink::Verdict;

pub(super) struct Ledger<'a> {
    pub(super) events: &'a [Stored],
    verdicts: Vec<Option<Verdict>>,
}

/// What a round left to be done.
#[derive(Debug)]
pub(super) enum Rest {
    /// Nothing, or it is known what.
    Known,
    /// The brokers refused a batch, and not all of what was in it need be to blame.
    Suspects,
    /// Nobody knows what became of some.
    Lost(Trouble),
}

impl<'a> Ledger<'a> {
    pub(super) fn of(events: &'a [Stored]) -> Self {
        Self { events, verdicts: vec![None; events.len()] }
    }

    /// What is to be sent: all that has no verdict and nothing refused before it in its key.
    pub(super) fn open(&mut self) -> Vec<usize> {
        let mut held = HashSet::new();
        let mut open = Vec::with_capacity(self.events.len());
        for (at, event) in self.events.iter().enumerate() {
            let key = (event.topic.as_str(), event.key.as_str());
            match &self.verdicts[at] {
                Some(Verdict::Refused(_) | Verdict::Missed(_)) => {
                    held.insert(key);
                }
                Some(Verdict::Taken | Verdict::Behind) => {}
                None if held.contains(&key) => self.verdicts[at] = Some(Verdict::Behind),
                None => open.push(at),
            }
        }
        open
    }

    /// Enters what a round said of these. An event that was alone is to blame itself.
    pub(super) fn enter(&mut self, open: &[usize], fates: Vec<Fate>, alone: bool) -> Rest {
        let mut rest = Rest::Known;
        for (at, fate) in open.iter().zip(fates) {
            match (fate, &rest) {
                (Fate::Taken, _) => self.verdicts[*at] = Some(Verdict::Taken),
                (Fate::Refused(why), _) => self.verdicts[*at] = Some(Verdict::Refused(why)),
                (Fate::Suspect(why), _) if alone => {
                    self.verdicts[*at] = Some(Verdict::Refused(why));
                }
                (Fate::Suspect(_), _) => rest = Rest::Suspects,
                (Fate::Lost(trouble), Rest::Known) => rest = Rest::Lost(trouble),
                (Fate::Lost(_) | Fate::Unsent, _) => {}
            }
        }
        rest
    }

    /// The verdicts. What is still open was kept from being sent by others, for as long as a call
    /// may take.
    pub(super) fn close(mut self) -> Vec<Verdict> {
        let mut held = HashSet::new();
        for at in self.open() {
            let event = &self.events[at];
            let why = || "the brokers refused others for too long".to_owned();
            self.verdicts[at] = Some(match held.insert((&event.topic, &event.key)) {
                true => Verdict::Missed(why()),
                false => Verdict::Behind,
            });
        }
        self.verdicts.into_iter().map(|verdict| verdict.unwrap_or(Verdict::Behind)).collect()
    }
}
