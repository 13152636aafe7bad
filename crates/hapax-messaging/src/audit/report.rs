use std::collections::BTreeMap;

use hapax_core::outbox::{EventId, Position};

use super::{
    EventFate,
    finding::{Finding, Kind},
    rules::{Excuse, Rules},
};

/// Most findings of a kind that are told one by one; all are counted.
const TOLD_MAX: u64 = 100;

/// What an audit came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Events that were committed.
    pub emitted: u64,
    /// Of these, those that arrived.
    pub delivered: u64,
    /// Arrivals beyond the first of each event.
    pub repeats: u64,
    /// Events that wait for their turn.
    pub waiting: u64,
    /// Events that are parked.
    pub parked: u64,
    /// Arrivals that were never told as committed, those without a readable name included.
    pub strangers: u64,
    /// Events that were acted on.
    pub effects: u64,
    /// Events that a consumer decided to have no effect.
    pub declined: u64,
    /// Keys that were looked at.
    pub keys: u64,
    /// How many findings there are of each kind.
    pub counts: BTreeMap<Kind, u64>,
    /// The first of each kind, in order of position.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many findings there are of this kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }
}

/// A report in the making.
pub(super) struct ReportTally<'a> {
    rules: Rules,
    /// Topics and keys by their numbers.
    names: Vec<(&'a str, &'a str)>,
    /// For each key, what arrived under it: when first, and where it stands.
    came: Vec<Vec<(u64, Position, EventId)>>,
    report: Report,
}

impl<'a> ReportTally<'a> {
    pub(super) fn new(
        rules: Rules,
        names: Vec<(&'a str, &'a str)>,
        arrivals: u64,
        unreadable: u64,
    ) -> Self {
        let came = vec![Vec::new(); names.len()];
        let keys = names.len() as u64;
        let mut report =
            Report { keys, repeats: arrivals, strangers: unreadable, ..Report::default() };
        if unreadable > 0 && !rules.strangers {
            // What bears no name cannot be told one by one.
            report.counts.insert(Kind::Unknown, unreadable);
        }
        Self { rules, names, came, report }
    }

    /// One that was committed; told in order of position.
    pub(super) fn event(&mut self, id: EventId, fate: &EventFate) {
        let Some((key, position)) = fate.emitted else { return };
        let find = |kind, times| (kind, id, Some(position), key, times);
        self.report.emitted += 1;
        match (fate.arrived, fate.excuse) {
            (Some((under, first)), _) => {
                self.report.delivered += 1;
                self.report.repeats -= 1;
                self.came[key].push((first, position, id));
                if fate.astray || under != key {
                    self.find(find(Kind::Misplaced, fate.arrivals));
                }
                if fate.arrivals > 1 && !self.rules.repeats {
                    self.find(find(Kind::Repeated, fate.arrivals));
                }
            }
            (None, Some(excuse)) => {
                match excuse {
                    Excuse::Waiting => self.report.waiting += 1,
                    Excuse::Parked => self.report.parked += 1,
                }
                if !self.rules.waiting {
                    self.find(find(Kind::Undelivered, 0));
                }
            }
            (None, None) if self.rules.arrivals => self.find(find(Kind::Lost, 0)),
            (None, None) => {}
        }
        let is_due = fate.arrived.is_some() || fate.excuse.is_none();
        match fate.effects {
            0 if fate.declined => self.report.declined += 1,
            0 if self.rules.effects && is_due => self.find(find(Kind::EffectMissing, 0)),
            0 => {}
            1 => self.report.effects += 1,
            times => {
                self.report.effects += 1;
                self.find(find(Kind::EffectDoubled, times));
            }
        }
    }

    /// One that was never told as committed.
    pub(super) fn stranger(&mut self, id: EventId, fate: &EventFate) {
        let Some((key, _)) = fate.arrived else { return };
        self.report.strangers += 1;
        self.report.repeats -= 1;
        if !self.rules.strangers {
            self.find((Kind::Unknown, id, None, key, fate.arrivals));
        }
    }

    pub(super) fn into_report(mut self) -> Report {
        let came = std::mem::take(&mut self.came);
        for (key, mut came) in came.into_iter().enumerate() {
            came.sort_unstable();
            let mut highest = Position::MIN;
            for (_, position, id) in came {
                if position < highest {
                    self.find((Kind::Swapped, id, Some(position), key, 1));
                }
                highest = highest.max(position);
            }
        }
        self.report.findings.sort_by_key(|finding| (finding.kind, finding.position, finding.id));
        self.report
    }

    fn find(&mut self, found: (Kind, EventId, Option<Position>, usize, u64)) {
        let (kind, id, position, key, times) = found;
        let count = self.report.counts.entry(kind).or_default();
        *count += 1;
        if *count > TOLD_MAX {
            return;
        }
        let (topic, key) = self.names[key];
        let (topic, key) = (topic.to_owned(), key.to_owned());
        self.report.findings.push(Finding { kind, id, position, topic, key, times });
    }
}
