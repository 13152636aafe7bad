//! The `hapax` program.

mod args;
mod audit;
mod bench;
mod call;
mod demo;
mod keys;
mod migrate;
mod outbox;
mod relay;
mod serve;
mod shell;
mod simulate;
mod store;
mod table;
mod token;
mod user;

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use args::{Args, Task};
use clap::Parser;
use mimalloc::MiMalloc;

/// The system's allocator gives memory back to the system with nearly every protected request.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match run(Args::parse().task) {
        Ok(status) => status,
        Err(error) => {
            serve::logs::fail(&sentence(&*error));
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode, Box<dyn Error>> {
    let well = |well| if well { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    Ok(match task {
        Task::Serve(args) => well(serve::run(args)?),
        Task::CheckConfig(args) => {
            write!(io::stdout(), "{}", serve::check(args)?)?;
            ExitCode::SUCCESS
        }
        Task::Demo(args) => well(demo::run(&args)?),
        Task::Call(args) => call::run(&args),
        Task::Keys(task) => keys::run(task)?,
        Task::Outbox(task) => outbox::run(task)?,
        Task::Relay(args) => well(relay::run(&args)?),
        Task::Audit(args) => audit::run(&args),
        Task::Migrate(args) => {
            migrate::run(&args)?;
            ExitCode::SUCCESS
        }
        Task::Bench(task) => well(bench::run(&task)? == bench::Verdict::Valid),
        Task::Simulate(task) => {
            simulate::run(&task)?;
            ExitCode::SUCCESS
        }
    })
}

/// An error and everything behind it, in one line, each cause once: some errors tell their cause
/// themselves.
fn sentence(error: &dyn Error) -> String {
    let mut told = error.to_string();
    for cause in std::iter::successors(error.source(), |&error| error.source()) {
        let cause_is_told = cause.is::<rusqlite::ffi::Error>() || told.contains(&cause.to_string());
        if !cause_is_told {
            told.push_str(&format!(": {cause}"));
        }
    }
    told
}
