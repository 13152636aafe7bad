//! `hapax bench`: our stores and the usual hand-written way, side by side in one run; [`tx`], one
//! transaction for effect and outcome; [`http`], the gateway and nginx; [`client`], the client and bare
//! reqwest; and [`outbox`], the relay and hand-written ones.
//!
//! - `plan` says what is measured, `request` what one request is;
//! - `arms` are the ways to make it happen once, `load` the callers, `sample` one measurement;
//! - `compare`, `fill` and `replay` are the three parts of the run;
//! - `machine`, `process` and `server` read meters;
//! - `turns` measures several ways, each in every round; `figures` and `report` say what came out.

mod arms;
mod client;
mod compare;
mod error;
mod figures;
mod fill;
mod http;
mod load;
mod machine;
mod outbox;
mod plan;
mod process;
mod replay;
mod report;
mod request;
mod sample;
mod server;
mod timetable;
mod turns;
mod tx;

use std::{io, path::Path, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::error::BenchError;
use self::{
    client::ClientPlan,
    http::HttpPlan,
    outbox::OutboxPlan,
    plan::{Plan, Postgres},
    report::Report,
    sample::Ground,
    server::Server,
    tx::TxPlan,
};
use crate::args::BenchTask;

/// Whether the figures may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid,
    /// A way did not have one effect for each key, or an operation failed.
    Invalid,
}

/// Does what was typed.
pub(crate) fn run(task: &BenchTask) -> Result<Verdict, BenchError> {
    match task {
        BenchTask::Store(raw) => stores(&Plan::resolve(raw)?),
        BenchTask::Tx(raw) => tx::run(&TxPlan::resolve(raw)?),
        BenchTask::Outbox(raw) => outbox::run(&OutboxPlan::resolve(raw)?),
        BenchTask::Client(raw) => client::run(&ClientPlan::resolve(raw)),
        BenchTask::Http(raw) => http::run(&HttpPlan::resolve(raw)?),
        BenchTask::HttpUpstream { port_file } => http::serve(port_file).map(|()| Verdict::Valid),
    }
}

fn stores(plan: &Plan) -> Result<Verdict, BenchError> {
    let directory = tempfile::Builder::new().prefix("hapax-bench-").tempdir();
    let directory = directory.map_err(BenchError::Directory)?;
    let mut facts = machine::facts(directory.path())?;
    let server = match &plan.postgres {
        Postgres::None => None,
        Postgres::Given(config) => Some(Server::given((**config).clone())),
        Postgres::Own => match Server::start() {
            Ok(server) => Some(server),
            Err(error) => {
                facts.push(("PostgreSQL", format!("not measured: {}", crate::sentence(&error))));
                None
            }
        },
    };
    if let Some(server) = &server {
        facts.extend(sample::workers()?.block_on(server.facts())?);
    }

    let progress = progress(steps(plan, server.is_some()));
    let mut sections = Vec::new();
    if plan.fill > 0 {
        let file = directory.path().join("filled.db");
        sections.push(fill::run(plan, &file, &progress)?);
        sections.push(replay::run(plan, &file, &progress)?);
    }
    sections.extend(compare::run(plan, Ground::Sqlite(directory.path()), &progress)?);
    if let Some(server) = &server {
        sections.extend(compare::run(plan, Ground::Postgres(server), &progress)?);
    }
    progress.finish_and_clear();

    publish(&Report { facts, sections }, plan.json.as_deref())
}

/// Prints the report, and saves it if a file is named.
fn publish(report: &Report, json: Option<&Path>) -> Result<Verdict, BenchError> {
    report.print(&mut io::stdout().lock()).map_err(BenchError::Print)?;
    if let Some(path) = json {
        report.save(path)?;
    }
    Ok(if report.is_valid() { Verdict::Valid } else { Verdict::Invalid })
}

fn steps(plan: &Plan, with_postgres: bool) -> u64 {
    let fill = if plan.fill > 0 { fill::STEPS + replay::STEPS } else { 0 };
    let stores = if with_postgres { 2 } else { 1 };
    fill + compare::steps(plan) * stores
}

/// Shown on a terminal alone.
fn progress(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed_precise} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
