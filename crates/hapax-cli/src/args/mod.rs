//! What people type. What it means is resolved by each task.

mod bench;

use clap::{Parser, Subcommand};

pub(crate) use self::bench::{BenchTask, Statements, StoreArgs};

/// One effect per key: makes retries harmless.
#[derive(Debug, Parser)]
#[command(name = "hapax", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Measure Hapax on this machine.
    #[command(subcommand)]
    Bench(BenchTask),
}
