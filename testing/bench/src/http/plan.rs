//! What is measured, with every default filled in.

use std::{env, path::PathBuf, time::Duration};

use clap::ValueEnum;

use super::error::HttpError;
use crate::{
    BenchError,
    args::{HttpArgs, HttpWay, ProgramArgs},
    plan::{self, PostgresChoice},
};

#[derive(Debug)]
pub(crate) struct HttpPlan {
    pub(super) kind: FigureKind,
    pub(super) ways: Vec<HttpWay>,
    pub(super) postgres: PostgresChoice,
    pub(super) postgres_url: Option<String>,
    pub(super) rounds: u32,
    pub(super) duration: Duration,
    pub(super) connections: Vec<usize>,
    /// The program that is started as the gateway.
    pub(super) program: PathBuf,
}

/// What the figures are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FigureKind {
    Speed,
    Memory,
}

impl HttpPlan {
    pub(crate) fn resolve(raw: &HttpArgs) -> Result<Self, BenchError> {
        let measure = &raw.measure;
        let defaults = if measure.quick { &QUICK } else { &FULL };
        Ok(Self {
            kind: if raw.memory { FigureKind::Memory } else { FigureKind::Speed },
            ways: raw.ways.clone().unwrap_or_else(|| HttpWay::value_variants().to_vec()),
            postgres: PostgresChoice::resolve(measure.postgres.as_deref())?,
            postgres_url: measure.postgres.clone(),
            rounds: measure.rounds.unwrap_or(defaults.rounds),
            duration: Duration::from_secs_f64(measure.seconds.unwrap_or(defaults.seconds)),
            connections: raw.connections.clone().unwrap_or_else(|| vec![64, 256]),
            program: program(&raw.program)?,
        })
    }

    /// How long each way runs before it is measured.
    pub(super) fn warm_up(&self) -> Duration {
        plan::warm_up(self.duration)
    }
}

/// The file of the program `hapax`. Cargo puts what it builds side by side.
pub(crate) fn program(raw: &ProgramArgs) -> Result<PathBuf, HttpError> {
    let file = match &raw.file {
        Some(file) => file.clone(),
        None => env::current_exe().map_err(HttpError::OwnFile)?.with_file_name("hapax"),
    };
    if file.is_file() { Ok(file) } else { Err(HttpError::NoProgram { file }) }
}

struct HttpDefaults {
    rounds: u32,
    seconds: f64,
}

const FULL: HttpDefaults = HttpDefaults { rounds: 5, seconds: 3.0 };
const QUICK: HttpDefaults = HttpDefaults { rounds: 2, seconds: 1.0 };
