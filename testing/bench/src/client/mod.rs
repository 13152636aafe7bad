//! `cargo xtask bench client`: calls through the client and its parts beside bare reqwest, and its journal
//! beside one written by hand.
//!
//! - `plan` says what is measured, `way` the ways that are compared;
//! - `calls` are those without a journal, `journalled` those with one, `by_hand` is the journal most
//!   people would write; `upstream` is the other end of all;
//! - `compare` measures them in turn; `alone` and `checks` take parts of the client out and time them
//!   by themselves, with `stopwatch`.

mod alone;
mod by_hand;
mod calls;
mod checks;
mod compare;
mod error;
mod journalled;
mod plan;
mod stopwatch;
mod upstream;
mod way;

use std::time::Duration;

pub(super) use self::{calls::connections, stopwatch::Stopwatch};
pub(crate) use self::{error::CallBenchError, plan::ClientPlan};
use super::{BenchError, run::BenchRun};

/// Measures.
pub(super) fn measure(plan: &ClientPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    run.note(("cores", "shared by load, upstreams, servers and what is measured".to_owned()));
    if plan.sync > Duration::ZERO {
        let said = format!("each commit waits {:?} more, as on a slower disk", plan.sync);
        run.note(("disk", said));
    }
    let progress = run.progress.clone();
    progress.expect(compare::steps(plan) + alone::STEPS + checks::STEPS);
    compare::run(plan, run)?;
    run.add(alone::run(plan, &progress)?);
    run.add(checks::run(plan, &progress)?);
    Ok(())
}
