//! What a drive found.

use std::{collections::BTreeMap, fmt};

use hapax_core::StateTag;

use crate::{
    check::{Facts, Violation},
    finding::Finding,
    journal::Entry,
};

/// What a drive found, counted.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Processes killed at a named place, by place.
    pub killed_at: BTreeMap<String, usize>,
    /// Processes killed from outside at a random moment.
    pub killed_at_random: usize,
    /// Processes killed from outside after they had slept through their leases.
    pub killed_after_sleep: usize,
    /// Times the database server was stopped at once.
    pub servers_stopped: usize,
    /// Victims that ended before they came to the place they were to die at.
    pub missed: usize,
    /// Times victims were recovered from and checked.
    pub episodes: usize,
    /// Operations checked.
    pub keys: usize,
    /// Effects that happened.
    pub effects: usize,
    /// Attempts that were begun.
    pub attempts: usize,
    /// Answers that told of an outcome.
    pub acknowledgements: usize,
    /// Operations that ended in doubt.
    pub in_doubt: usize,
    /// What was broken.
    pub findings: Vec<Finding<Violation>>,
}

impl Summary {
    /// Processes killed.
    pub fn kills(&self) -> usize {
        let at_places: usize = self.killed_at.values().sum();
        at_places + self.killed_at_random + self.killed_after_sleep
    }

    /// Counts what an episode left behind.
    pub(crate) fn count(&mut self, facts: &Facts) {
        self.episodes += 1;
        self.keys += facts.works.len();
        self.effects += facts.effects.values().map(Vec::len).sum::<usize>();
        let in_doubt = facts.kept.values().filter(|kept| kept.state == StateTag::InDoubt);
        self.in_doubt += in_doubt.count();
        for entry in &facts.journal {
            match entry {
                Entry::Attempt { .. } => self.attempts += 1,
                Entry::Told { .. } => self.acknowledgements += 1,
                Entry::Doubted { .. } | Entry::Absurd { .. } => {}
            }
        }
    }

    /// Adds the counts and findings of another.
    pub(crate) fn add(&mut self, other: Self) {
        for (place, count) in other.killed_at {
            *self.killed_at.entry(place).or_default() += count;
        }
        self.killed_at_random += other.killed_at_random;
        self.killed_after_sleep += other.killed_after_sleep;
        self.servers_stopped += other.servers_stopped;
        self.missed += other.missed;
        self.episodes += other.episodes;
        self.keys += other.keys;
        self.effects += other.effects;
        self.attempts += other.attempts;
        self.acknowledgements += other.acknowledgements;
        self.in_doubt += other.in_doubt;
        self.findings.extend(other.findings);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, count) in &self.killed_at {
            writeln!(f, "  {count:>5} killed at {place}")?;
        }
        writeln!(f, "  {:>5} killed at random", self.killed_at_random)?;
        writeln!(f, "  {:>5} killed after sleeping through a lease", self.killed_after_sleep)?;
        writeln!(f, "  {:>5} kills in all, {} strikes missed", self.kills(), self.missed)?;
        writeln!(f, "  {:>5} immediate stops of the server", self.servers_stopped)?;
        writeln!(f, "  {:>5} episodes, {} keys", self.episodes, self.keys)?;
        let Self { attempts, effects, acknowledgements, in_doubt, .. } = self;
        writeln!(f, "  {attempts:>5} attempts, {effects} effects, {in_doubt} keys in doubt")?;
        writeln!(f, "  {acknowledgements:>5} acknowledgements")?;
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        write!(f, "  {:>5} violations", self.findings.len())
    }
}
