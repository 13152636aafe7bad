//! `hapax bench store`: our stores, the usual hand-written way and Redis, side by side.

use hapax_services::redis;

use super::{
    compare::{self, Beside},
    error::BenchError,
    fill,
    plan::Plan,
    replay,
    run::Run,
    sample::Ground,
};

/// Measures.
pub(super) fn measure(plan: &Plan, run: &mut Run) -> Result<(), BenchError> {
    let server = run.postgres_if_there(&plan.postgres)?;
    let beside = match redis::version() {
        Ok(version) => {
            run.note(("Redis", version));
            Beside::Redis
        }
        Err(error) => {
            run.miss("Redis", &BenchError::Redis(error));
            Beside::Nothing
        }
    };
    let progress = run.progress.clone();
    progress.expect(steps(plan, beside, server.is_some()));
    let directory = run.directory().to_owned();
    if plan.fill > 0 {
        let file = directory.join("filled.db");
        run.add(fill::run(plan, &file, beside, &progress)?);
        run.add(replay::run(plan, &file, &progress)?);
    }
    for section in compare::run(plan, Ground::Sqlite(&directory), beside, &progress)? {
        run.add(section);
    }
    if let Some(server) = &server {
        let ground = Ground::Postgres(server);
        for section in compare::run(plan, ground, Beside::Nothing, &progress)? {
            run.add(section);
        }
    }
    Ok(())
}

fn steps(plan: &Plan, beside: Beside, with_postgres: bool) -> u64 {
    let fill = if plan.fill > 0 { fill::steps(beside) + replay::STEPS } else { 0 };
    let on_server = if with_postgres { compare::steps(plan, Beside::Nothing) } else { 0 };
    fill + compare::steps(plan, beside) + on_server
}
