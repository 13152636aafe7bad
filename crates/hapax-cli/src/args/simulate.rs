//! What people type after `hapax simulate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};

#[derive(Debug, Subcommand)]
pub(crate) enum SimulateTask {
    Backoff(BackoffArgs),
    Storm(StormArgs),
}

/// See which pauses between attempts do the least work.
///
/// Many clients want to change the same record, and one of them wins at a time: whoever read an old
/// version tries again after a pause. Counts the calls until all are done, and how long that takes,
/// for no pause, doubling pauses, and doubling pauses with equal, full and decorrelated jitter. The
/// network takes 10 ms, give or take 2. Time is simulated: it is over in seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax simulate backoff
  hapax simulate backoff --clients 20,40,80 --svg backoff.svg
  hapax simulate backoff --base 100 --cap 20000    the default schedule of the client")]
pub(crate) struct BackoffArgs {
    /// How many clients there are, one simulation each.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10,50,100,150,190")]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) clients: Vec<u32>,
    /// How many runs each figure is the mean of.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// What the pauses grow from.
    #[arg(long, value_name = "MS", default_value_t = 5)]
    pub(crate) base: u64,
    /// What no pause exceeds.
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    pub(crate) cap: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// See what retries do to services in trouble, and what helps.
///
/// Three bad days, each with several ways to retry: an outage below layers of services that all
/// retry; clients that all lose their server at once; and a service that was stopped for a while and
/// has to work off what piled up. Time is simulated: it is over in seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax simulate storm
  hapax simulate storm --html storm.html         the same with plots, for a browser
  hapax simulate storm --layers 5 --attempts 4   a deeper pile of services")]
pub(crate) struct StormArgs {
    /// How many layers of services stand above the one that fails.
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u32).range(1..=6))]
    pub(crate) layers: u32,
    /// How many attempts each layer makes.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = value_parser!(u32).range(1..=10))]
    pub(crate) attempts: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// What chance does: the same seed is the same run, to the byte.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Draw the plots into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the tables and the plots into this page.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
