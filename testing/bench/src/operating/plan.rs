//! What is measured, with every default filled in.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum as _;

use crate::{
    BenchError,
    args::{OperatingArgs, OperatingPart},
    http,
    plan::PostgresChoice,
};

#[derive(Debug)]
pub(crate) struct OperatingPlan {
    pub(super) parts: Vec<OperatingPart>,
    pub(super) postgres: PostgresChoice,
    pub(super) rounds: u32,
    pub(super) duration: Duration,
    /// How many requests a second are made where telemetry is measured, if the machine sustains them.
    pub(super) rate: f64,
    /// For how long a gateway is left alone.
    pub(super) idle: Duration,
    /// How many requests are timed in each round where sealing is measured alone.
    pub(super) repetitions: u64,
    /// The program that is started as the gateway.
    pub(super) program: PathBuf,
}

impl OperatingPlan {
    pub(crate) fn resolve(raw: &OperatingArgs) -> Result<Self, BenchError> {
        let measure = &raw.measure;
        let defaults = if measure.quick { &QUICK } else { &FULL };
        let seconds =
            |asked: Option<f64>, otherwise| Duration::from_secs_f64(asked.unwrap_or(otherwise));
        Ok(Self {
            parts: raw.parts.clone().unwrap_or_else(|| OperatingPart::value_variants().to_vec()),
            postgres: PostgresChoice::resolve(measure.postgres.as_deref())?,
            rounds: measure.rounds.unwrap_or(defaults.rounds),
            duration: seconds(measure.seconds, defaults.seconds),
            rate: f64::from(raw.rate),
            idle: seconds(raw.idle, defaults.idle),
            repetitions: defaults.repetitions,
            program: http::program(&raw.program)?,
        })
    }

    /// How many measurements there will be of so many ways.
    pub(super) fn steps(&self, ways: usize) -> u64 {
        u64::from(self.rounds) * u64::try_from(ways).unwrap_or(u64::MAX)
    }
}

struct OperatingDefaults {
    rounds: u32,
    seconds: f64,
    idle: f64,
    repetitions: u64,
}

const FULL: OperatingDefaults =
    OperatingDefaults { rounds: 5, seconds: 4.0, idle: 20.0, repetitions: 50_000 };
const QUICK: OperatingDefaults =
    OperatingDefaults { rounds: 1, seconds: 0.5, idle: 2.0, repetitions: 2_000 };
