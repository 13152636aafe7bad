//! `hapax bench store`: our stores and the usual hand-written way, side by side.

use super::{compare, error::BenchError, fill, plan::Plan, replay, run::Run, sample::Ground};

/// Measures.
pub(super) fn measure(plan: &Plan, run: &mut Run) -> Result<(), BenchError> {
    let server = run.postgres_if_there(&plan.postgres)?;
    let progress = run.progress.clone();
    progress.expect(steps(plan, server.is_some()));
    let directory = run.directory().to_owned();
    if plan.fill > 0 {
        let file = directory.join("filled.db");
        run.add(fill::run(plan, &file, &progress)?);
        run.add(replay::run(plan, &file, &progress)?);
    }
    for section in compare::run(plan, Ground::Sqlite(&directory), &progress)? {
        run.add(section);
    }
    if let Some(server) = &server {
        for section in compare::run(plan, Ground::Postgres(server), &progress)? {
            run.add(section);
        }
    }
    Ok(())
}

fn steps(plan: &Plan, with_postgres: bool) -> u64 {
    let fill = if plan.fill > 0 { fill::STEPS + replay::STEPS } else { 0 };
    let stores = if with_postgres { 2 } else { 1 };
    fill + compare::steps(plan) * stores
}
