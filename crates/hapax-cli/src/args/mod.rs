//! What people type. What it means is resolved by each task.

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
mod outbox;
mod plan;
mod quarantine;
mod relay;
mod serve;
mod simulate;
mod store_file;

use clap::{Parser, Subcommand};

pub(crate) use self::{
    audit::AuditArgs,
    backup::BackupArgs,
    call::{CallArgs, duration},
    completions::CompletionsArgs,
    consumers::{ConsumersListArgs, ConsumersTask, DeadArgs},
    demo::DemoArgs,
    doctor::DoctorArgs,
    encryption::{
        EncryptionTask, EraseArgs, KeyStoreArgs, MasterKeyArgs, RewrapArgs, ShowKeysArgs,
    },
    keys::{
        ChangeArgs, CountArgs, CountBy, ExplainArgs, KeysTask, ListArgs, ListOrder, NameArgs,
        PartArgs, PurgeArgs, ReleaseArgs, ResolveArgs, ResolvedAs, ShowArgs, SourceArgs, StateArgs,
        operation_id,
    },
    man::ManArgs,
    migrate::MigrateArgs,
    outbox::{
        CareArgs, DestinationArgs, OutboxListArgs, OutboxStoreArgs, OutboxTask, ParkedArgs,
        ParkedChangeArgs, RemoveArgs, WhichArgs,
    },
    plan::{PlanArgs, PlannedStore},
    quarantine::{LiftArgs, QuarantineStoreArgs, QuarantineTask},
    relay::RelayArgs,
    serve::{CheckConfigArgs, LogArgs, LogFormat, ServeArgs},
    simulate::{BackoffArgs, OutputArgs, SimulateTask, StormArgs},
    store_file::StoreFileArgs,
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
    Encryption(EncryptionTask),
    #[command(subcommand)]
    Outbox(OutboxTask),
    #[command(subcommand)]
    Consumers(ConsumersTask),
    #[command(subcommand)]
    Quarantine(QuarantineTask),
    Relay(Box<RelayArgs>),
    Audit(Box<AuditArgs>),
    Migrate(MigrateArgs),
    Backup(BackupArgs),
    Doctor(DoctorArgs),
    Plan(PlanArgs),
    /// See what retries do, in simulated time.
    #[command(subcommand)]
    Simulate(SimulateTask),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
