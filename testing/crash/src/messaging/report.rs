//! What a hunt found.

use std::{collections::BTreeMap, fmt, ops::AddAssign};

use super::{args::Role, check::MessagingViolation, trouble::Trouble};
use crate::hunt::{Deaths, HuntFinding};

/// What a hunt found, counted.
#[derive(Debug, Clone, Default)]
pub struct MessagingReport {
    /// How relays died.
    pub relays: Deaths,
    /// How consumers died.
    pub consumers: Deaths,
    /// What became of the servers meanwhile.
    pub troubles: BTreeMap<Trouble, usize>,
    /// What was written, sent and acted on.
    pub counts: Counts,
    /// What is wrong.
    pub findings: Vec<HuntFinding<MessagingViolation>>,
}

/// How one victim ended.
#[derive(Debug)]
pub(super) struct Burial {
    pub(super) role: Role,
    pub(super) deaths: Deaths,
    pub(super) failed: Option<HuntFinding<MessagingViolation>>,
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

impl MessagingReport {
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
}

impl AddAssign<Burial> for MessagingReport {
    fn add_assign(&mut self, buried: Burial) {
        let deaths = match buried.role {
            Role::Relay => &mut self.relays,
            Role::Consumer => &mut self.consumers,
        };
        *deaths += buried.deaths;
        self.findings.extend(buried.failed);
    }
}

impl fmt::Display for MessagingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (who, deaths) in [("relays", &self.relays), ("consumers", &self.consumers)] {
            deaths.tell(f, &format!("{who} "))?;
            writeln!(f, "  {:>5} {who} missed", deaths.missed)?;
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
