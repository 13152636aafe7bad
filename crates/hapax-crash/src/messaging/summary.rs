//! What a drive found.

use std::{collections::BTreeMap, fmt};

use super::{check::Violation, orders::Role, trouble::Trouble};
use crate::{
    drive::{Fate, Strike},
    finding::Finding,
};

/// What a drive found, counted.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// How relays died.
    pub relays: Deaths,
    /// How consumers died.
    pub consumers: Deaths,
    /// What became of the servers meanwhile.
    pub troubles: BTreeMap<Trouble, usize>,
    /// What was written, sent and acted on.
    pub counts: Counts,
    /// What is wrong.
    pub findings: Vec<Finding<Violation>>,
}

/// How victims of a role died.
#[derive(Debug, Clone, Default)]
pub struct Deaths {
    /// At a named place, by place.
    pub at: BTreeMap<String, usize>,
    /// From outside, at a random moment.
    pub at_random: usize,
    /// From outside, after they had slept through their leases.
    pub after_sleep: usize,
    /// Victims that ended before they came to the place they were to die at.
    pub missed: usize,
}

/// What was written, sent and acted on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Events that were committed.
    pub events: u64,
    /// Events whose transaction was rolled back.
    pub rolled_back: u64,
    /// Events whose writer was not told what became of its transaction.
    pub unknown: u64,
    /// Arrivals at the broker beyond the first of each event.
    pub repeats: u64,
    /// Events that were acted on.
    pub effects: u64,
    /// Events that no consumer could act on, put aside.
    pub dead_letters: u64,
}

impl Deaths {
    /// How many died.
    pub fn kills(&self) -> usize {
        self.at.values().sum::<usize>() + self.at_random + self.after_sleep
    }

    /// Counts how a victim ended; how, if it should not have.
    pub(super) fn count(&mut self, fate: Fate, strike: &Strike) -> Option<String> {
        match (fate, strike) {
            (Fate::Failed(how), _) => return Some(how),
            (Fate::Killed, Strike::At(at)) => *self.at.entry(at.place.clone()).or_default() += 1,
            (Fate::Killed, Strike::After(_)) => self.at_random += 1,
            (Fate::Killed, Strike::Asleep { .. }) => self.after_sleep += 1,
            (Fate::Ended, _) => self.missed += 1,
        }
        None
    }
}

impl Summary {
    /// How many died.
    pub fn kills(&self) -> usize {
        self.relays.kills() + self.consumers.kills()
    }

    /// How victims of this role died.
    pub fn deaths(&self, role: Role) -> &Deaths {
        match role {
            Role::Relay => &self.relays,
            Role::Consumer => &self.consumers,
        }
    }

    pub(super) fn deaths_mut(&mut self, role: Role) -> &mut Deaths {
        match role {
            Role::Relay => &mut self.relays,
            Role::Consumer => &mut self.consumers,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, deaths) in [("relays", &self.relays), ("consumers", &self.consumers)] {
            for (place, count) in &deaths.at {
                writeln!(f, "  {count:>5} {name} killed at {place}")?;
            }
            let Deaths { at_random, after_sleep, missed, .. } = deaths;
            writeln!(f, "  {at_random:>5} {name} killed at random")?;
            writeln!(f, "  {after_sleep:>5} {name} killed after sleeping through a lease")?;
            writeln!(f, "  {missed:>5} {name} missed")?;
        }
        for (trouble, count) in &self.troubles {
            writeln!(f, "  {count:>5} times {trouble}")?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let Counts { events, rolled_back, unknown, repeats, effects, dead_letters } = self.counts;
        write!(
            f,
            "{} killed ({} relays, {} consumers); {events} events committed ({unknown} without a \
             word), {rolled_back} rolled back, {repeats} sent again; {effects} effects, \
             {dead_letters} dead letters; {} violations",
            self.kills(),
            self.relays.kills(),
            self.consumers.kills(),
            self.findings.len()
        )
    }
}
