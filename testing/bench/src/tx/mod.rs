//! `cargo xtask bench tx`: one business insert, bare and protected in the same transaction, side by side.
//!
//! - `arms` are the ways to make the insert happen once; `way` names them;
//! - `compare` measures them in turn, and says what follows.

mod arms;
mod compare;
mod way;

use std::time::Duration;

use super::{BenchError, plan::PostgresChoice, run::BenchRun};
use crate::args::TxArgs;

/// What is measured, with every default filled in.
#[derive(Debug)]
pub(crate) struct TxPlan {
    postgres: PostgresChoice,
    rounds: u32,
    duration: Duration,
    callers: Vec<usize>,
}

impl TxPlan {
    pub(crate) fn resolve(raw: &TxArgs) -> Result<Self, BenchError> {
        let measure = &raw.measure;
        let (rounds, seconds, callers): (_, _, &[usize]) =
            if measure.quick { (1, 0.5, &[1, 64]) } else { (5, 3.0, &[1, 16, 64, 256]) };
        Ok(Self {
            postgres: PostgresChoice::resolve(measure.postgres.as_deref())?,
            rounds: measure.rounds.unwrap_or(rounds),
            duration: Duration::from_secs_f64(measure.seconds.unwrap_or(seconds)),
            callers: raw.callers.clone().unwrap_or_else(|| callers.to_vec()),
        })
    }
}

/// Measures.
pub(super) fn measure(plan: &TxPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    let server = run.postgres(&plan.postgres)?;
    run.progress.expect(compare::steps(plan));
    compare::run(plan, &server, run)
}
