//! What a hunt found.

use std::{fmt, ops::AddAssign};

use hapax_core::StateTag;

use super::{
    check::{RecordFacts, RecordViolation},
    journal::JournalLine,
};
use crate::hunt::{Deaths, HuntFinding};

/// What a hunt found, counted.
#[derive(Debug, Clone, Default)]
pub struct RecordReport {
    /// How victims died.
    pub deaths: Deaths,
    /// Times the database server was stopped at once.
    pub servers_stopped: usize,
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
    pub findings: Vec<HuntFinding<RecordViolation>>,
}

impl RecordReport {
    /// Counts what an episode left behind.
    pub(super) fn count(&mut self, facts: &RecordFacts) {
        self.episodes += 1;
        self.keys += facts.works.len();
        self.effects += facts.effects.values().map(Vec::len).sum::<usize>();
        let in_doubt = facts.kept.values().filter(|kept| kept.state == StateTag::InDoubt);
        self.in_doubt += in_doubt.count();
        for entry in &facts.journal {
            match entry {
                JournalLine::Attempt { .. } => self.attempts += 1,
                JournalLine::Told { .. } => self.acknowledgements += 1,
                JournalLine::Doubted { .. } | JournalLine::Absurd { .. } => {}
            }
        }
    }
}

impl AddAssign for RecordReport {
    fn add_assign(&mut self, other: Self) {
        self.deaths += other.deaths;
        self.servers_stopped += other.servers_stopped;
        self.episodes += other.episodes;
        self.keys += other.keys;
        self.effects += other.effects;
        self.attempts += other.attempts;
        self.acknowledgements += other.acknowledgements;
        self.in_doubt += other.in_doubt;
        self.findings.extend(other.findings);
    }
}

impl fmt::Display for RecordReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deaths.tell(f, "")?;
        let (kills, missed) = (self.deaths.kills(), self.deaths.missed);
        writeln!(f, "  {kills:>5} kills in all, {missed} strikes missed")?;
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
