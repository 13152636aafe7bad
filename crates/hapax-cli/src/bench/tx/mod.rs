//! `hapax bench tx`: one business insert, bare and protected in the same transaction, side by side.
//!
//! - `arms` are the ways to make the insert happen once; `way` names them;
//! - `compare` measures them in turn, and says what follows.

mod arms;
mod compare;
mod way;

use std::{path::PathBuf, time::Duration};

use super::{
    BenchError, Verdict, machine, plan::Postgres, progress, publish, report::Report, sample,
    server::Server,
};
use crate::args::TxArgs;

/// What is measured, with every default filled in.
#[derive(Debug)]
pub(crate) struct TxPlan {
    postgres: Postgres,
    rounds: u32,
    duration: Duration,
    callers: Vec<usize>,
    json: Option<PathBuf>,
}

impl TxPlan {
    pub(crate) fn resolve(raw: &TxArgs) -> Result<Self, BenchError> {
        let measure = &raw.measure;
        let (rounds, seconds, callers): (_, _, &[usize]) =
            if measure.quick { (1, 0.5, &[1, 64]) } else { (5, 3.0, &[1, 16, 64, 256]) };
        Ok(Self {
            postgres: Postgres::resolve(measure.postgres.as_deref())?,
            rounds: measure.rounds.unwrap_or(rounds),
            duration: Duration::from_secs_f64(measure.seconds.unwrap_or(seconds)),
            callers: raw.callers.clone().unwrap_or_else(|| callers.to_vec()),
            json: measure.json.clone(),
        })
    }
}

/// Measures, and tells.
pub(crate) fn run(plan: &TxPlan) -> Result<Verdict, BenchError> {
    let directory = tempfile::Builder::new().prefix("hapax-bench-").tempdir();
    let directory = directory.map_err(BenchError::Directory)?;
    let mut facts = machine::facts(directory.path())?;
    let server = Server::needed(&plan.postgres)?;
    facts.extend(sample::workers()?.block_on(server.facts())?);
    let progress = progress(compare::steps(plan));
    let sections = compare::run(plan, &server, &progress)?;
    progress.finish_and_clear();
    publish(&Report { facts, sections }, plan.json.as_deref())
}
