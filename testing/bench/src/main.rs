//! `cargo xtask bench`: our stores and the usual hand-written way, side by side in one run; [`tx`], one
//! transaction for effect and outcome; [`http`], the gateway and nginx; [`client`], the client and bare
//! reqwest; [`outbox`], the relay and hand-written ones; [`operating`], telemetry, encryption, the
//! dashboard and TLS, with and without; [`curves`], how all of it grows; and [`all`] of them.
//!
//! - `run` is what benches share: a directory, a server, `progress`, and the report;
//! - `plan` says what is measured in `store`, `request` what one request is;
//! - `arms` are the ways to make it happen once, `load` the callers, `sample` one measurement;
//! - `compare`, `fill` and `replay` are its three parts;
//! - `machine`, `process`, `disk` and `server` read meters;
//! - `turns` measures several ways, each in every round; `figures` and `report` say what came out.

mod all;
mod args;
mod arms;
mod client;
mod compare;
mod curves;
mod disk;
mod error;
mod figures;
mod fill;
mod http;
mod load;
mod machine;
mod operating;
mod outbox;
mod plan;
mod process;
mod progress;
mod replay;
mod report;
mod request;
mod run;
mod sample;
mod server;
mod store;
mod timetable;
mod turns;
mod tx;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use hapax_cli::sentence;
use mimalloc::MiMalloc;

pub(crate) use self::error::BenchError;
use self::{
    args::{Args, BenchTask, ReportArgs},
    client::ClientPlan,
    curves::CurvesPlan,
    http::HttpPlan,
    operating::OperatingPlan,
    outbox::OutboxPlan,
    plan::RunPlan,
    run::BenchRun,
    tx::TxPlan,
};

/// As the program that is shipped has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match run(&Args::parse().task) {
        Ok(FiguresVerdict::Valid) => ExitCode::SUCCESS,
        Ok(FiguresVerdict::Invalid) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody is left to be told when the terminal is gone.
            let _ = writeln!(io::stderr(), "hapax-bench: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// Whether the figures may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FiguresVerdict {
    Valid,
    /// A way did not have one effect for each key, an operation failed, or somebody ended the run
    /// before it was done.
    Invalid,
}

/// Does what was typed.
fn run(task: &BenchTask) -> Result<FiguresVerdict, BenchError> {
    match task {
        BenchTask::All(raw) => all::run(raw),
        BenchTask::Store(raw) => {
            let plan = RunPlan::resolve(raw)?;
            alone("store", &raw.measure.report, |run| store::measure(&plan, run))
        }
        BenchTask::Tx(raw) => {
            let plan = TxPlan::resolve(raw)?;
            alone("tx", &raw.measure.report, |run| tx::measure(&plan, run))
        }
        BenchTask::Curves(raw) => {
            let plan = CurvesPlan::resolve(raw)?;
            alone("curves", &raw.measure.report, |run| curves::measure(&plan, run))
        }
        BenchTask::Outbox(raw) => {
            let plan = OutboxPlan::resolve(raw)?;
            alone("outbox", &raw.measure.report, |run| outbox::measure(&plan, run))
        }
        BenchTask::Client(raw) => {
            let plan = ClientPlan::resolve(raw);
            alone("client", &raw.report, |run| client::measure(&plan, run))
        }
        BenchTask::Http(raw) => {
            let plan = HttpPlan::resolve(raw)?;
            alone("http", &raw.measure.report, |run| http::measure(&plan, run))
        }
        BenchTask::Operating(raw) => {
            let plan = OperatingPlan::resolve(raw)?;
            alone("operating", &raw.measure.report, |run| operating::measure(&plan, run))
        }
        BenchTask::HttpUpstream { port_file } => {
            http::serve(port_file).map(|()| FiguresVerdict::Valid)
        }
    }
}

/// One bench by itself. Where it cannot be measured, nothing is reported.
fn alone(
    name: &'static str,
    report: &ReportArgs,
    measure: impl FnOnce(&mut BenchRun) -> Result<(), BenchError>,
) -> Result<FiguresVerdict, BenchError> {
    let mut run = BenchRun::start(name)?;
    run.bench(name, name.to_owned());
    match measure(&mut run) {
        Ok(()) | Err(BenchError::CutShort) => run.finish(report),
        Err(error) => Err(error),
    }
}
