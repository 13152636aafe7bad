//! What is measured, with every default filled in.

use std::time::Duration;

use crate::{
    args::{CurvesArgs, CurvesPart, CurvesStore},
    error::BenchError,
    plan::PostgresChoice,
};

#[derive(Debug)]
pub(crate) struct CurvesPlan {
    pub(super) postgres: PostgresChoice,
    pub(super) rounds: u32,
    pub(super) duration: Duration,
    pub(super) parts: Vec<CurvesPart>,
    pub(super) stores: Vec<CurvesStore>,
    pub(super) callers: Vec<u64>,
    /// How many keys are in the store.
    pub(super) keys: Vec<u64>,
    /// How many records are past retention when a purge begins.
    pub(super) expired: u64,
}

impl CurvesPlan {
    pub(crate) fn resolve(raw: &CurvesArgs) -> Result<Self, BenchError> {
        let measure = &raw.measure;
        let defaults = if measure.quick { &QUICK } else { &FULL };
        let all = || CurvesPart::ALL.to_vec();
        let stores = || vec![CurvesStore::Sqlite, CurvesStore::Postgres];
        Ok(Self {
            postgres: PostgresChoice::resolve(measure.postgres.as_deref())?,
            rounds: measure.rounds.unwrap_or(defaults.rounds),
            duration: Duration::from_secs_f64(measure.seconds.unwrap_or(defaults.seconds)),
            parts: raw.parts.clone().unwrap_or_else(all),
            stores: raw.stores.clone().unwrap_or_else(stores),
            callers: defaults.callers.to_vec(),
            keys: keys(raw.keys_max.unwrap_or(defaults.keys_max)),
            expired: defaults.expired,
        })
    }
}

/// Some sizes up to the largest, which is one of them.
fn keys(max: u64) -> Vec<u64> {
    let smaller = [10_000, 1_000_000, 10_000_000].into_iter().filter(|keys| *keys < max);
    smaller.chain([max]).collect()
}

struct CurveDefaults {
    rounds: u32,
    seconds: f64,
    callers: &'static [u64],
    keys_max: u64,
    expired: u64,
}

const FULL: CurveDefaults = CurveDefaults {
    rounds: 5,
    seconds: 1.5,
    callers: &[1, 4, 16, 64, 256, 1024],
    keys_max: 10_000_000,
    expired: 300_000,
};
const QUICK: CurveDefaults = CurveDefaults {
    rounds: 1,
    seconds: 0.3,
    callers: &[1, 64],
    keys_max: 100_000,
    expired: 20_000,
};
