//! `hapax simulate`: what retries do, in simulated time and from one seed.
//!
//! - [`backoff`] is about pauses, [`storm`] about services in trouble;
//! - `event_queue` is time, `chance` is luck; every decision about a retry is the library's own;
//!
//! What came out is a report, as other commands make them.

mod backoff;
mod chance;
mod error;
mod event_queue;
mod storm;

use std::{fs, io, path::Path};

use hapax_cli::plot::sheet;

pub(crate) use self::error::SimulateError;
use crate::{
    args::{OutputArgs, SimulateTask},
    report::{ChartedReport, html},
};

/// Does what was typed.
pub(crate) fn run(task: &SimulateTask) -> Result<(), SimulateError> {
    let (report, output) = match task {
        SimulateTask::Backoff(args) => (backoff::run(args)?, &args.output),
        SimulateTask::Storm(args) => (storm::run(args)?, &args.output),
    };
    publish(&report, output)
}

fn publish(report: &ChartedReport, output: &OutputArgs) -> Result<(), SimulateError> {
    report.print(&mut io::stdout().lock()).map_err(SimulateError::Print)?;
    if let Some(path) = &output.svg {
        save(path, &sheet(report.charts()))?;
    }
    if let Some(path) = &output.html {
        save(path, &html(report))?;
    }
    Ok(())
}

fn save(path: &Path, text: &str) -> Result<(), SimulateError> {
    fs::write(path, text).map_err(|source| SimulateError::Save { path: path.to_owned(), source })
}
