//! What was counted, held against what was committed.

use std::{collections::BTreeMap, fmt};

use super::figures::InstructionCount;
use crate::TaskFailure;

/// By how much a figure may change, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(u64);

impl Limit {
    /// Where everything but the code is the same.
    pub const SAME_TOOLS: Self = Self(5);
    /// Where the compiler, the C library, valgrind or the processor is another one.
    pub const OTHER_TOOLS: Self = Self(15);

    fn verdict(self, committed: u64, now: u64) -> PathVerdict {
        if now * 100 > committed * (100 + self.0) {
            PathVerdict::Slower
        } else if now * 100 < committed * (100 - self.0) {
            PathVerdict::Faster
        } else {
            PathVerdict::Within
        }
    }
}

/// All paths, each with both of its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    rows: Vec<ComparisonRow>,
    limit: Limit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ComparisonRow {
    name: String,
    committed: u64,
    now: u64,
    verdict: PathVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathVerdict {
    Within,
    Slower,
    Faster,
    NotCommitted,
    NotCounted,
}

impl Comparison {
    /// Compares every path that is on either side.
    pub fn new(
        committed: &BTreeMap<String, InstructionCount>,
        now: &BTreeMap<String, InstructionCount>,
        limit: Limit,
    ) -> Self {
        let gone = committed.keys().filter(|name| !now.contains_key(*name));
        let rows = now.keys().chain(gone).flat_map(|name| {
            let (committed, now) = (committed.get(name), now.get(name));
            let row = |name: String, count: fn(&InstructionCount) -> u64| {
                let verdict = match (committed, now) {
                    (Some(committed), Some(now)) => limit.verdict(count(committed), count(now)),
                    (Some(_), None) => PathVerdict::NotCounted,
                    (None, _) => PathVerdict::NotCommitted,
                };
                let (committed, now) = (committed.map_or(0, count), now.map_or(0, count));
                ComparisonRow { name, committed, now, verdict }
            };
            let hashing = row(format!("{name}, hashing"), |count| count.hashing);
            let hashes = hashing.committed > 0 || hashing.now > 0;
            let all =
                [Some(row(name.clone(), |count| count.instructions)), hashes.then_some(hashing)];
            all.into_iter().flatten()
        });
        Self { rows: rows.collect(), limit }
    }

    /// Fails if a path takes more than it may, or was never compared.
    pub fn judge(&self) -> Result<(), TaskFailure> {
        let Limit(percent) = self.limit;
        let mut wrong = Vec::new();
        for ComparisonRow { name, verdict, .. } in &self.rows {
            match verdict {
                PathVerdict::Slower => wrong.push(format!("{name} takes over {percent} % more")),
                PathVerdict::NotCommitted => wrong.push(format!("{name} has no committed figure")),
                PathVerdict::NotCounted => wrong.push(format!("{name} is no path any more")),
                PathVerdict::Within | PathVerdict::Faster => {}
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let accept = "`cargo xtask bench-guard --accept` takes what is counted now";
        Err(TaskFailure::new(format!("{}; if that is meant, {accept}", wrong.join(", "))))
    }
}

/// A table, and what to do about paths that became faster.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<26}{:>12}{:>12}{:>10}", "path", "committed", "now", "change")?;
        for ComparisonRow { name, committed, now, verdict } in &self.rows {
            let (change, mark) = match verdict {
                PathVerdict::Within => (change(*committed, *now), ""),
                PathVerdict::Slower => (change(*committed, *now), "  TOO MANY"),
                PathVerdict::Faster => (change(*committed, *now), "  fewer"),
                PathVerdict::NotCommitted => ("new".to_owned(), "  NOT COMMITTED"),
                PathVerdict::NotCounted => ("gone".to_owned(), "  NOT COUNTED"),
            };
            writeln!(f, "{name:<26}{committed:>12}{now:>12}{change:>10}{mark}")?;
        }
        if self.rows.iter().any(|row| row.verdict == PathVerdict::Faster) {
            writeln!(f, "note: some take fewer; `--accept` keeps them there")?;
        }
        Ok(())
    }
}

/// In per cent, to a tenth.
fn change(committed: u64, now: u64) -> String {
    if committed == 0 {
        return "new".to_owned();
    }
    let tenths = (i128::from(now) - i128::from(committed)) * 1000 / i128::from(committed);
    let (sign, tenths) = (if tenths < 0 { '-' } else { '+' }, tenths.unsigned_abs());
    format!("{sign}{}.{} %", tenths / 10, tenths % 10)
}
