//! What is known of each event of a call.

use std::collections::HashSet;

use hapax_core::outbox::Stored;

use super::{ProducerTrouble, round::ProducedFate};
use crate::sink::Verdict;

pub(super) struct RoundLedger<'a> {
    pub(super) events: &'a [Stored],
    verdicts: Vec<Option<Verdict>>,
}

/// What a round left to be done.
#[derive(Debug)]
pub(super) enum RoundRest {
    /// Nothing, or it is known what.
    Known,
    /// The brokers refused a batch, and not all of what was in it need be to blame.
    Suspects,
    /// Nobody knows what became of some.
    Lost(ProducerTrouble),
}

impl<'a> RoundLedger<'a> {
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
    pub(super) fn enter(
        &mut self,
        open: &[usize],
        fates: Vec<ProducedFate>,
        alone: bool,
    ) -> RoundRest {
        let mut rest = RoundRest::Known;
        for (at, fate) in open.iter().zip(fates) {
            match (fate, &rest) {
                (ProducedFate::Taken, _) => self.verdicts[*at] = Some(Verdict::Taken),
                (ProducedFate::Refused(why), _) => self.verdicts[*at] = Some(Verdict::Refused(why)),
                (ProducedFate::Suspect(why), _) if alone => {
                    self.verdicts[*at] = Some(Verdict::Refused(why));
                }
                (ProducedFate::Suspect(_), _) => rest = RoundRest::Suspects,
                (ProducedFate::Lost(trouble), RoundRest::Known) => rest = RoundRest::Lost(trouble),
                (ProducedFate::Lost(_) | ProducedFate::Unsent, _) => {}
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
