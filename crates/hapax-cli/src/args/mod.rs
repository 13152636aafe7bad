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
mod report;
mod serve;
mod simulate;
mod store_file;
mod verify;

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
    report::ObservationReportArgs,
    serve::{CheckConfigArgs, LogArgs, LogFormat, ServeArgs},
    simulate::{BackoffArgs, OutputArgs, SimulateTask, StormArgs},
    store_file::StoreFileArgs,
    verify::{RouteSettings, VerifyArgs, VerifyConsentArgs, VerifySettings, WrittenKey},
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
    Report(ObservationReportArgs),
    Relay(Box<RelayArgs>),
    Audit(Box<AuditArgs>),
    Migrate(MigrateArgs),
    Backup(BackupArgs),
    Doctor(DoctorArgs),
    Plan(PlanArgs),
    Verify(Box<VerifyArgs>),
    /// See what retries do, in simulated time.
    #[command(subcommand)]
    Simulate(SimulateTask),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;

    /// A copy is made of a file, and a plan of numbers.
    const WITHOUT_A_FILE: [&str; 2] = ["backup", "plan"];

    fn commands(command: &Command) -> Vec<&Command> {
        let below = command.get_subcommands().flat_map(commands);
        std::iter::once(command).chain(below).collect()
    }

    #[test]
    fn wherever_a_store_can_be_named_its_address_may_be_in_a_file() {
        let program = Args::command();
        let has = |command: &Command, name| command.get_arguments().any(|arg| arg.get_id() == name);
        for command in commands(&program) {
            let is_named = has(command, "store") && !WITHOUT_A_FILE.contains(&command.get_name());
            assert!(!is_named || has(command, "store_file"), "hapax {}", command.get_name());
        }
    }
}
