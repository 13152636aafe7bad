//! The `hapax` program.

mod args;
mod audit;
mod call;
mod completions;
mod demo;
mod keys;
mod man;
mod migrate;
mod outbox;
mod parts;
mod relay;
mod serve;
mod shell;
mod signals;
mod simulate;
mod store;
mod token;
mod user;

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use args::{Args, Task};
use clap::Parser;
use hapax_cli::{sentence, table};
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
        Task::Simulate(task) => {
            simulate::run(&task)?;
            ExitCode::SUCCESS
        }
        Task::Completions(args) => {
            completions::run(&args)?;
            ExitCode::SUCCESS
        }
        Task::Man(args) => {
            man::run(&args)?;
            ExitCode::SUCCESS
        }
    })
}
