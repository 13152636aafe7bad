//! What is measured, with every default filled in.

use std::time::Duration;

use tokio_postgres::Config;

use super::error::BenchError;
use crate::args::{Statements, StoreArgs};

#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(super) postgres: PostgresChoice,
    pub(super) statements: Statements,
    pub(super) rounds: u32,
    pub(super) duration: Duration,
    pub(super) callers: Vec<usize>,
    pub(super) fill: u64,
}

/// Which PostgreSQL server is measured.
#[derive(Debug)]
pub(super) enum PostgresChoice {
    Own,
    Given(Box<Config>),
    None,
}

impl PostgresChoice {
    /// What was typed: a URL, `none`, or nothing.
    pub(super) fn resolve(raw: Option<&str>) -> Result<Self, BenchError> {
        match raw {
            None => Ok(Self::Own),
            Some("none") => Ok(Self::None),
            Some(url) => Ok(Self::Given(url.parse().map(Box::new).map_err(BenchError::Url)?)),
        }
    }
}

impl RunPlan {
    pub(crate) fn resolve(raw: &StoreArgs) -> Result<Self, BenchError> {
        let measure = &raw.measure;
        let defaults = if measure.quick { &QUICK } else { &FULL };
        Ok(Self {
            postgres: PostgresChoice::resolve(measure.postgres.as_deref())?,
            statements: raw.statements,
            rounds: measure.rounds.unwrap_or(defaults.rounds),
            duration: Duration::from_secs_f64(measure.seconds.unwrap_or(defaults.seconds)),
            callers: raw.callers.clone().unwrap_or_else(|| defaults.callers.to_vec()),
            fill: raw.fill.unwrap_or(defaults.fill),
        })
    }
}

/// How long something runs before it is measured for this long.
pub(super) fn warm_up(measured_for: Duration) -> Duration {
    (measured_for / 6).min(Duration::from_secs(1))
}

struct Defaults {
    rounds: u32,
    seconds: f64,
    callers: &'static [usize],
    fill: u64,
}

const FULL: Defaults =
    Defaults { rounds: 5, seconds: 2.0, callers: &[1, 16, 64, 256], fill: 1_000_000 };
const QUICK: Defaults = Defaults { rounds: 1, seconds: 0.5, callers: &[1, 64], fill: 20_000 };
