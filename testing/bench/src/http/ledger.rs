//! How often each key was executed, as the upstream saw it.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Where the upstream tells what it saw.
pub(super) const PATH: &str = "/ledger";

/// What the upstream executed, by key.
#[derive(Debug, Default)]
pub(super) struct UpstreamLedger {
    by_key: HashMap<Box<[u8]>, u32>,
    executions: u64,
    repeated: u64,
}

impl UpstreamLedger {
    /// Notes one execution of a key.
    pub(super) fn executed(&mut self, key: &[u8]) {
        self.executions += 1;
        match self.by_key.get_mut(key) {
            None => drop(self.by_key.insert(key.into(), 1)),
            Some(times) => {
                self.repeated += u64::from(*times == 1);
                *times += 1;
            }
        }
    }

    pub(super) fn totals(&self) -> LedgerTotals {
        let keys = u64::try_from(self.by_key.len()).unwrap_or(u64::MAX);
        LedgerTotals { executions: self.executions, keys, repeated: self.repeated }
    }
}

/// A ledger in three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedgerTotals {
    pub(crate) executions: u64,
    /// Keys executed at least once.
    pub(crate) keys: u64,
    /// Keys executed more than once.
    pub(crate) repeated: u64,
}

impl LedgerTotals {
    pub(super) fn json(self) -> Value {
        json!({ "executions": self.executions, "keys": self.keys, "repeated": self.repeated })
    }

    /// `None` if this is not what [`LedgerTotals::json`] writes.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let count = |name: &str| value.get(name)?.as_u64();
        Some(Self {
            executions: count("executions")?,
            keys: count("keys")?,
            repeated: count("repeated")?,
        })
    }

    /// What is wrong if this many keys were to be executed once each.
    pub(super) fn wrong(self, keys: u64) -> Option<String> {
        let right = Self { executions: keys, keys, repeated: 0 };
        (self != right).then(|| {
            let Self { executions, keys: executed, repeated } = self;
            format!(
                "{keys} keys were answered, but the upstream executed {executed} keys \
                 {executions} times, {repeated} of them more than once"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_ran_twice_or_not_at_all_is_told() {
        let mut ledger = UpstreamLedger::default();
        for key in [b"a", b"b"] {
            ledger.executed(key);
        }
        assert_eq!(ledger.totals().wrong(2), None);
        assert!(ledger.totals().wrong(3).is_some());
        for _ in 0..2 {
            ledger.executed(b"b");
        }
        let totals = ledger.totals();
        assert_eq!(totals, LedgerTotals { executions: 4, keys: 2, repeated: 1 });
        assert!(totals.wrong(2).is_some_and(|wrong| wrong.contains("1 of them more than once")));
    }

    #[test]
    fn totals_are_read_as_they_were_written() {
        let totals = LedgerTotals { executions: 4, keys: 2, repeated: 1 };
        assert_eq!(LedgerTotals::read(totals.json().to_string().as_bytes()), Some(totals));
        assert_eq!(LedgerTotals::read(b"{}"), None);
    }
}
