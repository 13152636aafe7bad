//! What was counted, held against what was committed.

use std::{collections::BTreeMap, fmt};

use super::figures::Count;
use crate::Failure;

/// By how much a figure may change, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(u64);

impl Limit {
    /// Where everything but the code is the same.
    pub const SAME_TOOLS: Self = Self(5);
    /// Where the compiler, the C library, valgrind or the processor is another one.
    pub const OTHER_TOOLS: Self = Self(15);

    fn verdict(self, committed: u64, now: u64) -> Verdict {
        if now * 100 > committed * (100 + self.0) {
            Verdict::Slower
        } else if now * 100 < committed * (100 - self.0) {
            Verdict::Faster
        } else {
            Verdict::Within
        }
    }
}

/// All paths, each with both of its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    rows: Vec<Row>,
    limit: Limit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    name: String,
    committed: u64,
    now: u64,
    verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Within,
    Slower,
    Faster,
    NotCommitted,
    NotCounted,
}

impl Comparison {
    /// Compares every path that is on either side.
    pub fn new(
        committed: &BTreeMap<String, Count>,
        now: &BTreeMap<String, Count>,
        limit: Limit,
    ) -> Self {
        let gone = committed.keys().filter(|name| !now.contains_key(*name));
        let rows = now.keys().chain(gone).flat_map(|name| {
            let (committed, now) = (committed.get(name), now.get(name));
            let row = |name: String, count: fn(&Count) -> u64| {
                let verdict = match (committed, now) {
                    (Some(committed), Some(now)) => limit.verdict(count(committed), count(now)),
                    (Some(_), None) => Verdict::NotCounted,
                    (None, _) => Verdict::NotCommitted,
                };
                let (committed, now) = (committed.map_or(0, count), now.map_or(0, count));
                Row { name, committed, now, verdict }
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
    pub fn judge(&self) -> Result<(), Failure> {
        let Limit(percent) = self.limit;
        let mut wrong = Vec::new();
        for Row { name, verdict, .. } in &self.rows {
            match verdict {
                Verdict::Slower => wrong.push(format!("{name} takes over {percent} % more")),
                Verdict::NotCommitted => wrong.push(format!("{name} has no committed figure")),
                Verdict::NotCounted => wrong.push(format!("{name} is no path any more")),
                Verdict::Within | Verdict::Faster => {}
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let accept = "`cargo xtask bench-guard --accept` takes what is counted now";
        Err(Failure::new(format!("{}; if that is meant, {accept}", wrong.join(", "))))
    }
}

/// A table, and what to do about paths that became faster.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<26}{:>12}{:>12}{:>10}", "path", "committed", "now", "change")?;
        for Row { name, committed, now, verdict } in &self.rows {
            let (change, mark) = match verdict {
                Verdict::Within => (change(*committed, *now), ""),
                Verdict::Slower => (change(*committed, *now), "  TOO MANY"),
                Verdict::Faster => (change(*committed, *now), "  fewer"),
                Verdict::NotCommitted => ("new".to_owned(), "  NOT COMMITTED"),
                Verdict::NotCounted => ("gone".to_owned(), "  NOT COUNTED"),
            };
            writeln!(f, "{name:<26}{committed:>12}{now:>12}{change:>10}{mark}")?;
        }
        if self.rows.iter().any(|row| row.verdict == Verdict::Faster) {
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
