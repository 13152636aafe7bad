//! What people type after `hapax consumers`.

use clap::{Subcommand, value_parser};

use super::OutboxStoreArgs;

/// Look at who consumes messages on a store, and at what could not be acted on.
///
/// Nothing is changed: dead letters are discarded and forgiven on the dashboard of `hapax serve`, or by its admin API.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  hapax consumers list
  hapax consumers dead mailer
  hapax consumers dead mailer --json --store postgres://owner@db/shop")]
pub(crate) enum ConsumersTask {
    /// List consumers: how much is dead, tried again, held and remembered. Counts end at 10,000.
    List(ConsumersListArgs),
    /// List the dead letters of a consumer, in order of their messages.
    Dead(DeadArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConsumersListArgs {
    #[command(flatten)]
    pub(crate) store: OutboxStoreArgs,

    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeadArgs {
    /// The consumer's name.
    #[arg(value_name = "CONSUMER")]
    pub(crate) consumer: String,

    /// Whose consumer it is.
    #[arg(long, value_name = "TENANT", default_value = "messages")]
    pub(crate) tenant: String,

    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,

    #[command(flatten)]
    pub(crate) store: OutboxStoreArgs,
}
