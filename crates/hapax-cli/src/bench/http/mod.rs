//! `hapax bench http`: the gateway and nginx in front of one upstream, side by side in one run.
//!
//! - `plan` says what is measured, `way` how a request can reach the upstream;
//! - `upstream` is the other end, with its `ledger` of effects; `nginx` and `gateway` stand between,
//!   each a `child` process; `database` is where a gateway may keep its records;
//! - `client` is one connection, `load` all of them, `wire` the
//!   bytes;
//! - `sample` is one measurement, `compare` the rounds of them, `memory` the other kind of run.

mod child;
mod client;
mod compare;
mod database;
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

use std::path::Path;

use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

pub(super) use self::{child::Child, client::Client as Connection};
use self::{
    database::Database,
    nginx::Nginx,
    plan::Kind,
    sample::Ground,
    way::{Between, Records},
};
pub(crate) use self::{error::HttpError, plan::HttpPlan, upstream::serve};
use super::{
    BenchError, Verdict, machine,
    machine::Fact,
    report::{Report, Section},
};
use crate::args::HttpWay;

/// Measures, prints the report, and saves it where the plan says.
pub(crate) fn run(plan: &HttpPlan) -> Result<Verdict, BenchError> {
    let directory = tempfile::Builder::new().prefix("hapax-bench-").tempdir();
    let directory = directory.map_err(BenchError::Directory)?;
    // One thread makes the load: it leaves the cores to what is measured.
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
    let report = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(HttpError::Signals)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(HttpError::Signals)?;
        tokio::select! {
            report = measure(plan, directory.path()) => report,
            // Dropping the measurement stops the servers it started.
            _ = interrupt.recv() => Err(HttpError::Interrupted.into()),
            _ = terminate.recv() => Err(HttpError::Interrupted.into()),
        }
    })?;
    super::publish(&report, plan.json.as_deref())
}

async fn measure(plan: &HttpPlan, directory: &Path) -> Result<Report, BenchError> {
    let mut facts = machine::facts(directory)?;
    let sections = match plan.kind {
        Kind::Speed => speed(plan, directory, &mut facts).await?,
        Kind::Memory => {
            let progress = super::progress(memory::STEPS);
            let section = memory::run(directory, &progress).await?;
            progress.finish_and_clear();
            vec![section]
        }
    };
    Ok(Report { facts, sections })
}

async fn speed(
    plan: &HttpPlan,
    directory: &Path,
    facts: &mut Vec<Fact>,
) -> Result<Vec<Section>, BenchError> {
    let asks = |between: fn(Between) -> bool| plan.ways.iter().any(|way| between(way.between()));
    let mut nginx = None;
    if asks(|between| between == Between::Nginx) {
        match Nginx::find() {
            Ok(found) => {
                facts.push(("nginx", found.version.clone()));
                nginx = Some(found);
            }
            Err(error) => facts.push(not_measured("nginx", &crate::sentence(&error))),
        }
    }
    let mut database = None;
    if asks(|between| matches!(between, Between::Gateway(_, Records::Server))) {
        match Database::start(plan) {
            Ok(started) => {
                facts.extend(started.facts().await?);
                database = Some(started);
            }
            Err(reason) => facts.push(not_measured("PostgreSQL", &reason)),
        }
    }
    facts.push(("cores", "shared by the load, the upstream and what is between them".to_owned()));
    let ground = Ground { directory, nginx: nginx.as_ref(), database: database.as_ref() };
    let ways: Vec<HttpWay> = plan.ways.iter().copied().filter(|way| ground.offers(*way)).collect();
    let progress = super::progress(compare::steps(plan, &ways));
    let sections = compare::run(plan, &ground, &ways, &progress).await?;
    progress.finish_and_clear();
    Ok(sections)
}

fn not_measured(what: &'static str, reason: &str) -> Fact {
    (what, format!("not measured: {reason}"))
}
