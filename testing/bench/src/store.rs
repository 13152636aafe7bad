//! `cargo xtask bench store`: our stores, the usual hand-written way and Redis, side by side.

use hapax_services::redis;

use super::{
    compare::{self, RedisBeside},
    error::BenchError,
    fill,
    plan::RunPlan,
    replay,
    run::BenchRun,
    sample::StoreGround,
};

/// Measures.
pub(super) fn measure(plan: &RunPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    let server = run.postgres_if_there(&plan.postgres)?;
    let beside = match redis::version() {
        Ok(version) => {
            run.note(("Redis", version));
            RedisBeside::Redis
        }
        Err(error) => {
            run.miss("Redis", &BenchError::Redis(error));
            RedisBeside::Nothing
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
    for section in compare::run(plan, StoreGround::Sqlite(&directory), beside, &progress)? {
        run.add(section);
    }
    if let Some(server) = &server {
        let ground = StoreGround::Postgres(server);
        for section in compare::run(plan, ground, RedisBeside::Nothing, &progress)? {
            run.add(section);
        }
    }
    Ok(())
}

fn steps(plan: &RunPlan, beside: RedisBeside, with_postgres: bool) -> u64 {
    let fill = if plan.fill > 0 { fill::steps(beside) + replay::STEPS } else { 0 };
    let on_server = if with_postgres { compare::steps(plan, RedisBeside::Nothing) } else { 0 };
    fill + compare::steps(plan, beside) + on_server
}
