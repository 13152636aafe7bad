//! How victims died, counted.

use std::{collections::BTreeMap, fmt, ops::AddAssign};

use super::{Strike, VictimEnd};

/// How victims died.
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

impl Deaths {
    /// How many died.
    pub fn kills(&self) -> usize {
        self.at.values().sum::<usize>() + self.at_random + self.after_sleep
    }

    /// Whether so many died, and at least `each` of them at each of these places.
    pub(crate) fn are_enough(&self, kills: usize, places: &[&str], each: usize) -> bool {
        let at = |place: &str| self.at.get(place).copied().unwrap_or(0);
        self.kills() >= kills && places.iter().all(|place| at(place) >= each)
    }

    /// Counts how a victim ended; how, if it should not have.
    pub(crate) fn count(&mut self, end: VictimEnd, strike: &Strike) -> Option<String> {
        match (end, strike) {
            (VictimEnd::Failed(how), _) => return Some(how),
            (VictimEnd::Killed, Strike::At(at)) => {
                *self.at.entry(at.place.clone()).or_default() += 1;
            }
            (VictimEnd::Killed, Strike::After(_)) => self.at_random += 1,
            (VictimEnd::Killed, Strike::Asleep { .. }) => self.after_sleep += 1,
            (VictimEnd::Ended, _) => self.missed += 1,
        }
        None
    }

    /// Tells how many died where, a line for each place; `who` died stands before "killed".
    pub(crate) fn tell(&self, f: &mut fmt::Formatter<'_>, who: &str) -> fmt::Result {
        for (place, count) in &self.at {
            writeln!(f, "  {count:>5} {who}killed at {place}")?;
        }
        writeln!(f, "  {:>5} {who}killed at random", self.at_random)?;
        writeln!(f, "  {:>5} {who}killed after sleeping through a lease", self.after_sleep)
    }
}

impl AddAssign for Deaths {
    fn add_assign(&mut self, other: Self) {
        for (place, count) in other.at {
            *self.at.entry(place).or_default() += count;
        }
        self.at_random += other.at_random;
        self.after_sleep += other.after_sleep;
        self.missed += other.missed;
    }
}
