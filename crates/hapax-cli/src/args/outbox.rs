//! What people type after `hapax outbox`.

use clap::{ArgGroup, Subcommand, value_parser};
use hapax_core::outbox::Position;

use super::{MasterKeyArgs, StoreFileArgs};

/// Look at what is to be published, and decide about what could not be.
///
/// Exit codes: 0 done; 1 failed, nothing was changed; 2 the arguments mean nothing; 3 there is no
/// such destination, or nothing is parked that was meant; 4 nothing was changed, because you did
/// not say yes; 5 nobody knows whether it was changed: look again.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  hapax outbox list
  hapax outbox lag billing
  hapax outbox parked billing --key orders.paid/4711
  hapax outbox replay billing --key orders.paid/4711 --dry-run
  hapax outbox replay billing --all --store postgres://owner@db/shop
  hapax outbox pause billing")]
pub(crate) enum OutboxTask {
    /// List destinations: what they want, how far behind they are, and who serves them.
    List(OutboxListArgs),
    /// Show how far a destination is behind, lane by lane.
    Lag(DestinationArgs),
    /// List events that were put aside for a destination, in order of their position.
    Parked(ParkedArgs),
    /// Have parked events sent again, each key in order and before its later events.
    Replay(ParkedChangeArgs),
    /// Remove parked events for good: the destination never gets them.
    Forget(ParkedChangeArgs),
    /// Stop sending to a destination; what is emitted meanwhile is kept.
    Pause(DestinationArgs),
    /// Go on sending to a destination that was paused.
    Resume(DestinationArgs),
    /// Forget a destination, how far it was, and what is parked for it.
    Remove(RemoveArgs),
}

/// Where the outbox is.
#[derive(Debug, clap::Args)]
pub(crate) struct OutboxStoreArgs {
    /// The store: sqlite:PATH or postgres://user@host:port/database.
    #[arg(long, env = "HAPAX_STORE", value_name = "URL", hide_env_values = true)]
    #[arg(default_value = "sqlite:hapax.db")]
    pub(crate) store: String,

    #[command(flatten)]
    pub(crate) file: StoreFileArgs,

    /// Answer in JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxListArgs {
    #[command(flatten)]
    pub(crate) store: OutboxStoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DestinationArgs {
    /// The destination's name.
    #[arg(value_name = "DESTINATION")]
    pub(crate) destination: String,

    #[command(flatten)]
    pub(crate) store: OutboxStoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ParkedArgs {
    #[command(flatten)]
    pub(crate) of: DestinationArgs,

    #[command(flatten)]
    pub(crate) which: WhichArgs,

    /// Only positions after this one: where the last page ended.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = value_parser!(Position).range(0..))]
    pub(crate) after: Position,

    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u64).range(1..=100_000))]
    pub(crate) limit: u64,

    /// Show the payloads too; those of encrypted events, given the master key.
    #[arg(long)]
    pub(crate) payload: bool,

    #[command(flatten)]
    pub(crate) keys: MasterKeyArgs,
}

/// Which parked events; those of a key, one, or all.
#[derive(Debug, clap::Args)]
pub(crate) struct WhichArgs {
    /// Those of one key, written TOPIC/KEY; the topic ends at the first slash unless --topic names
    /// it.
    #[arg(long, value_name = "TOPIC/KEY")]
    pub(crate) key: Option<String>,

    /// The topic of --key, which then is the key alone.
    #[arg(long, value_name = "TOPIC", requires = "key")]
    pub(crate) topic: Option<String>,

    /// The one at this position.
    #[arg(long, value_name = "N", conflicts_with = "key")]
    #[arg(value_parser = value_parser!(Position).range(1..))]
    pub(crate) position: Option<Position>,
}

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("which").args(["key", "position", "all"]).required(true)))]
pub(crate) struct ParkedChangeArgs {
    #[command(flatten)]
    pub(crate) of: DestinationArgs,

    #[command(flatten)]
    pub(crate) which: WhichArgs,

    /// All of them.
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) care: CareArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    pub(crate) of: DestinationArgs,

    #[command(flatten)]
    pub(crate) care: CareArgs,
}

/// How careful a change is.
#[derive(Debug, clap::Args)]
pub(crate) struct CareArgs {
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}
