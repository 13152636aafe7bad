//! What a hunt found.

use std::{collections::BTreeMap, fmt, ops::AddAssign};

use hapax_client::Conclusion;

use super::check::{ClientFacts, ClientViolation};
use crate::hunt::{Deaths, HuntFinding};

/// What a hunt found, counted.
#[derive(Debug, Clone, Default)]
pub struct ClientReport {
    /// How clients died.
    pub deaths: Deaths,
    /// Times another process was at work on the same journal.
    pub in_company: usize,
    /// Journals that were filled, resumed and checked.
    pub episodes: usize,
    /// How many of them were encrypted, from the first on or while they were in use.
    pub encrypted: usize,
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
    pub findings: Vec<HuntFinding<ClientViolation>>,
}

impl ClientReport {
    /// Counts what was concluded when everything was resumed.
    pub(super) fn conclude(&mut self, facts: &ClientFacts) {
        for kept in facts.kept.values() {
            let word = kept.conclusion.map_or("pending", Conclusion::as_str);
            *self.conclusions.entry(word).or_default() += 1;
        }
    }

    /// Counts what an episode came to in the end.
    pub(super) fn count(&mut self, facts: &ClientFacts) {
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
}

impl AddAssign for ClientReport {
    fn add_assign(&mut self, other: Self) {
        self.deaths += other.deaths;
        for (word, count) in other.conclusions {
            *self.conclusions.entry(word).or_default() += count;
        }
        self.in_company += other.in_company;
        self.episodes += other.episodes;
        self.encrypted += other.encrypted;
        self.operations += other.operations;
        self.arrivals += other.arrivals;
        self.mishaps += other.mishaps;
        self.replays += other.replays;
        self.effects += other.effects;
        self.told += other.told;
        self.findings.extend(other.findings);
    }
}

impl fmt::Display for ClientReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deaths.tell(f, "")?;
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let Self { deaths, in_company, episodes, operations, told, .. } = self;
        let Self { arrivals, mishaps, replays, effects, .. } = self;
        let words: Vec<_> =
            self.conclusions.iter().map(|(word, count)| format!("{count} {word}")).collect();
        write!(
            f,
            "{} killed at {} places ({} missed, {in_company} in company), {episodes} \
             journals, {operations} operations: {}; {told} told; {arrivals} arrivals, {mishaps} \
             mishaps, {replays} duplicates prevented, {effects} effects; {} violations",
            deaths.kills(),
            deaths.at.len(),
            deaths.missed,
            words.join(", "),
            self.findings.len()
        )
    }
}
