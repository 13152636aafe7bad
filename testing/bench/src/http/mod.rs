//! `cargo xtask bench http`: the gateway and nginx in front of one upstream, side by side in one run.
//!
//! - `plan` says what is measured, `way` how a request can reach the upstream;
//! - `upstream` is the other end, with its `ledger` of effects; `nginx` and `gateway` stand between,
//!   each a `child` process; `database` is where a gateway may keep its records, `disk` how
//!   much room they take;
//! - `client` is one connection, `load` all of them, `wire` the
//!   bytes;
//! - `sample` is one measurement, `compare` the rounds of them, `memory` the other kind of run.

mod child;
mod client;
mod compare;
mod database;
mod disk;
mod error;
mod gateway;
mod ledger;
mod load;
mod memory;
mod nginx;
mod plan;
mod sample;
mod upstream;
mod way;
mod wire;

pub(super) use self::{
    child::Child,
    client::KeepAliveClient as Connection,
    gateway::{BenchGateway, GatewayProtection, GatewaySetup, sqlite},
    load::{HttpLoad, KeyChoice, RequestPace, Traffic},
    plan::program,
};
use self::{
    database::Database,
    nginx::Nginx,
    plan::FigureKind,
    sample::HttpGround,
    way::{Between, Records},
};
pub(crate) use self::{error::HttpError, plan::HttpPlan, upstream::serve};
use super::{BenchError, run::BenchRun};
use crate::args::HttpWay;

/// Measures.
pub(super) fn measure(plan: &HttpPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    run.note(("cores", "shared by load, upstreams, servers and what is measured".to_owned()));
    match plan.kind {
        FigureKind::Speed => speed(plan, run),
        FigureKind::Memory => {
            run.progress.expect(memory::STEPS);
            run.add(memory::run(&plan.program, run.directory(), &run.progress)?);
            Ok(())
        }
    }
}

fn speed(plan: &HttpPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    let asks = |between: fn(Between) -> bool| plan.ways.iter().any(|way| between(way.between()));
    let mut nginx = None;
    if asks(|between| between == Between::Nginx) {
        match Nginx::find() {
            Ok(found) => {
                run.note(("nginx", found.version.clone()));
                nginx = Some(found);
            }
            Err(error) => run.miss("nginx", &HttpError::from(error).into()),
        }
    }
    let mut database = None;
    if asks(|between| matches!(between, Between::Gateway(_, Records::Server))) {
        let server = run.postgres_if_there(&plan.postgres)?;
        database = server.map(|server| Database::new(server, plan.postgres_url.as_deref()));
    }
    let directory = run.directory().to_owned();
    let ground = HttpGround {
        program: &plan.program,
        directory: &directory,
        nginx: nginx.as_ref(),
        database: database.as_ref(),
    };
    let ways: Vec<HttpWay> = plan.ways.iter().copied().filter(|way| ground.offers(*way)).collect();
    run.progress.expect(compare::steps(plan, &ways));
    compare::run(plan, &ground, &ways, run)
}
