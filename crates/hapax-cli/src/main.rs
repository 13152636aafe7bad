//! The `hapax` program.

mod args;
mod bench;
#[allow(dead_code, reason = "opened by the tasks that follow")]
mod store;

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use args::{Args, BenchTask, Task};
use clap::Parser;

fn main() -> ExitCode {
    let Task::Bench(BenchTask::Store(raw)) = Args::parse().task;
    match bench::Plan::resolve(&raw).and_then(|plan| bench::run(&plan)) {
        Ok(bench::Verdict::Valid) => ExitCode::SUCCESS,
        Ok(bench::Verdict::Invalid) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody is left to be told when the terminal is gone.
            let _ = writeln!(io::stderr(), "hapax: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and everything behind it, in one line.
fn sentence(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
