//! What a drive found.

use std::{collections::BTreeMap, fmt};

use hapax_client::Conclusion;

use super::check::{Facts, Violation};
use crate::finding::Finding;

/// What a drive found, counted.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Processes killed at a named place, by place.
    pub killed_at: BTreeMap<String, usize>,
    /// Processes killed from outside at a random moment.
    pub killed_at_random: usize,
    /// Processes killed from outside after they had slept through their leases.
    pub killed_after_sleep: usize,
    /// Victims that ended before they came to the place they were to die at.
    pub missed: usize,
    /// Times another process was at work on the same journal.
    pub in_company: usize,
    /// Journals that were filled, resumed and checked.
    pub episodes: usize,
    /// Operations checked.
    pub operations: usize,
    /// Requests that arrived.
    pub arrivals: u64,
    /// What happened to requests and answers on their way.
    pub mishaps: u64,
    /// Duplicates that were answered with what the first had been answered with.
    pub replays: u64,
    /// Effects that happened.
    pub effects: usize,
    /// What the journal said when everything was resumed, by its words.
    pub conclusions: BTreeMap<&'static str, usize>,
    /// What callers were told.
    pub told: usize,
    /// What is wrong.
    pub findings: Vec<Finding<Violation>>,
}

impl Summary {
    /// How many died.
    pub fn kills(&self) -> usize {
        let at_places: usize = self.killed_at.values().sum();
        at_places + self.killed_at_random + self.killed_after_sleep
    }

    /// Counts what was concluded when everything was resumed.
    pub(super) fn conclude(&mut self, facts: &Facts) {
        for kept in facts.kept.values() {
            let word = kept.conclusion.map_or("pending", Conclusion::as_str);
            *self.conclusions.entry(word).or_default() += 1;
        }
    }

    /// Counts what an episode came to in the end.
    pub(super) fn count(&mut self, facts: &Facts) {
        self.episodes += 1;
        self.operations += facts.seen.len();
        self.told += facts.told.len();
        for seen in facts.seen.values() {
            self.arrivals += seen.arrivals;
            self.mishaps += seen.mishaps;
            self.replays += seen.replays;
            self.effects += seen.effects.len();
        }
    }

    /// Adds the counts and findings of another.
    pub(super) fn add(&mut self, other: Self) {
        for (place, count) in other.killed_at {
            *self.killed_at.entry(place).or_default() += count;
        }
        for (word, count) in other.conclusions {
            *self.conclusions.entry(word).or_default() += count;
        }
        self.killed_at_random += other.killed_at_random;
        self.killed_after_sleep += other.killed_after_sleep;
        self.missed += other.missed;
        self.in_company += other.in_company;
        self.episodes += other.episodes;
        self.operations += other.operations;
        self.arrivals += other.arrivals;
        self.mishaps += other.mishaps;
        self.replays += other.replays;
        self.effects += other.effects;
        self.told += other.told;
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
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let Self { missed, in_company, episodes, operations, told, .. } = self;
        let Self { arrivals, mishaps, replays, effects, .. } = self;
        let words: Vec<_> =
            self.conclusions.iter().map(|(word, count)| format!("{count} {word}")).collect();
        write!(
            f,
            "{} killed at {} places ({missed} missed, {in_company} in company), {episodes} \
             journals, {operations} operations: {}; {told} told; {arrivals} arrivals, {mishaps} \
             mishaps, {replays} duplicates prevented, {effects} effects; {} violations",
            self.kills(),
            self.killed_at.len(),
            words.join(", "),
            self.findings.len()
        )
    }
}
