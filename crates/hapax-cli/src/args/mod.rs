//! What people type. What it means is resolved by each task.

mod audit;
mod call;
mod completions;
mod demo;
mod keys;
mod man;
mod migrate;
mod outbox;
mod relay;
mod serve;
mod simulate;

use clap::{Parser, Subcommand};

pub(crate) use self::{
    audit::AuditArgs,
    call::{CallArgs, duration},
    completions::CompletionsArgs,
    demo::DemoArgs,
    keys::{
        ChangeArgs, ExplainArgs, KeysTask, ListArgs, NameArgs, PartArgs, PurgeArgs, ReleaseArgs,
        ResolveArgs, ResolvedAs, ShowArgs, SourceArgs, operation_id,
    },
    man::ManArgs,
    migrate::MigrateArgs,
    outbox::{
        CareArgs, DestinationArgs, OutboxListArgs, OutboxStoreArgs, OutboxTask, ParkedArgs,
        ParkedChangeArgs, RemoveArgs, WhichArgs,
    },
    relay::RelayArgs,
    serve::{CheckConfigArgs, LogArgs, LogFormat, ServeArgs},
    simulate::{BackoffArgs, OutputArgs, SimulateTask, StormArgs},
};
use crate::parts;

/// One effect per key: makes retries harmless.
#[derive(Debug, Parser)]
#[command(name = "hapax", version, long_version = parts::version(), after_help = parts::sentence())]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    Serve(ServeArgs),
    CheckConfig(CheckConfigArgs),
    Demo(DemoArgs),
    Call(Box<CallArgs>),
    #[command(subcommand)]
    Keys(KeysTask),
    #[command(subcommand)]
    Outbox(OutboxTask),
    Relay(Box<RelayArgs>),
    Audit(Box<AuditArgs>),
    Migrate(MigrateArgs),
    /// See what retries do, in simulated time.
    #[command(subcommand)]
    Simulate(SimulateTask),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
