//! What is measured, with every default filled in.

use std::time::Duration;

use clap::ValueEnum;

use crate::{
    args::{HttpArgs, HttpWay},
    bench::{
        BenchError,
        plan::{self, Postgres},
    },
};

#[derive(Debug)]
pub(crate) struct HttpPlan {
    pub(super) kind: Kind,
    pub(super) ways: Vec<HttpWay>,
    pub(super) postgres: Postgres,
    pub(super) postgres_url: Option<String>,
    pub(super) rounds: u32,
    pub(super) duration: Duration,
    pub(super) connections: Vec<usize>,
}

/// What the figures are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Speed,
    Memory,
}

impl HttpPlan {
    pub(crate) fn resolve(raw: &HttpArgs) -> Result<Self, BenchError> {
        let measure = &raw.measure;
        let defaults = if measure.quick { &QUICK } else { &FULL };
        Ok(Self {
            kind: if raw.memory { Kind::Memory } else { Kind::Speed },
            ways: raw.ways.clone().unwrap_or_else(|| HttpWay::value_variants().to_vec()),
            postgres: Postgres::resolve(measure.postgres.as_deref())?,
            postgres_url: measure.postgres.clone(),
            rounds: measure.rounds.unwrap_or(defaults.rounds),
            duration: Duration::from_secs_f64(measure.seconds.unwrap_or(defaults.seconds)),
            connections: raw.connections.clone().unwrap_or_else(|| vec![64, 256]),
        })
    }

    /// How long each way runs before it is measured.
    pub(super) fn warm_up(&self) -> Duration {
        plan::warm_up(self.duration)
    }
}

struct Defaults {
    rounds: u32,
    seconds: f64,
}

const FULL: Defaults = Defaults { rounds: 5, seconds: 3.0 };
const QUICK: Defaults = Defaults { rounds: 2, seconds: 1.0 };
