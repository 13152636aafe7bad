//! The `hapax` program.

mod args;
mod audit;
mod backup;
mod call;
mod completions;
mod consumers;
mod demo;
mod doctor;
mod encryption;
mod keys;
mod man;
mod migrate;
mod observations;
mod outbox;
mod parts;
mod plan;
mod quarantine;
mod relay;
mod report;
mod serve;
mod shell;
mod signals;
mod simulate;
mod store;
mod telemetry;
mod token;
mod units;
mod user;
mod verify;

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
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(refused) => return serve::logs::refuse_arguments(&refused),
    };
    match run(args.task) {
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
        Task::Encryption(task) => {
            encryption::run(task)?;
            ExitCode::SUCCESS
        }
        Task::Outbox(task) => outbox::run(task)?,
        Task::Consumers(task) => {
            consumers::run(&task)?;
            ExitCode::SUCCESS
        }
        Task::Quarantine(task) => {
            quarantine::run(&task)?;
            ExitCode::SUCCESS
        }
        Task::Report(args) => {
            observations::run(&args)?;
            ExitCode::SUCCESS
        }
        Task::Relay(args) => well(relay::run(&args)?),
        Task::Audit(args) => audit::run(&args),
        Task::Migrate(args) => {
            migrate::run(&args)?;
            ExitCode::SUCCESS
        }
        Task::Backup(args) => {
            backup::run(&args)?;
            ExitCode::SUCCESS
        }
        Task::Doctor(args) => doctor::run(&args),
        Task::Plan(args) => {
            plan::run(&args)?;
            ExitCode::SUCCESS
        }
        Task::Verify(args) => verify::run(&args),
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
