//! `hapax bench client`: calls through the client and its parts beside bare reqwest, and its journal
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

pub(crate) use self::{error::ClientError, plan::ClientPlan};
use super::{BenchError, Verdict, machine, progress, publish, report::Report};

/// Measures, prints the report, and saves it where the plan says.
pub(crate) fn run(plan: &ClientPlan) -> Result<Verdict, BenchError> {
    let directory = tempfile::Builder::new().prefix("hapax-bench-").tempdir();
    let directory = directory.map_err(BenchError::Directory)?;
    let mut facts = machine::facts(directory.path())?;
    facts.push(("cores", "shared by the callers and the upstream".to_owned()));
    if plan.sync > Duration::ZERO {
        let said = format!("each commit waits {:?} more, as on a slower disk", plan.sync);
        facts.push(("disk", said));
    }
    let progress = progress(compare::steps(plan) + alone::STEPS + checks::STEPS);
    let mut sections = compare::run(plan, directory.path(), &progress)?;
    sections.push(alone::run(plan, &progress)?);
    sections.push(checks::run(plan, &progress)?);
    progress.finish_and_clear();
    publish(&Report { facts, sections }, plan.json.as_deref())
}
