//! `hapax audit`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::StoreFileArgs;

/// Compare what was emitted with what arrived and what was acted on: nothing lost, doubled or swapped.
///
/// What was emitted is read from the outbox, as far back as it is still kept, or from a file of
/// CloudEvents in JSON lines, as `hapax relay --to stdout:` writes them. What arrived is read back
/// from the destination, which changes nothing there. Who acted is read from the inbox of a
/// consumer, or from a file of ids.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("compared").args(["at", "consumer", "acted"]).required(true).multiple(true)))]
#[command(after_help = "\
Places that can be read back:
  file:PATH                        lines of CloudEvents in JSON
  nats://host:port                 a JetStream stream: --stream
  kafka://host:port,host:port      the topics that were emitted to; kafka+ssl:// as for hapax relay
Queues of RabbitMQ and SQS cannot be read without taking from them: look at --consumer or --acted.

Examples:
  hapax audit --store sqlite:shop.db --destination tape --at file:tape.jsonl
  hapax audit --store postgres://owner@db/shop --destination orders --at nats://127.0.0.1:4222 \\
      --stream ORDERS --consumer mailer --inbox postgres://mailer@db/mails
  hapax audit --emitted orders.jsonl --acted mails.log --drained

Exit status: 0 nothing is wrong; 1 something is, and it is shown; 2 it could not be found out.")]
pub(crate) struct AuditArgs {
    /// Where the outbox is: sqlite:PATH or postgres://user@host:port/database.
    #[arg(long, env = "HAPAX_STORE", value_name = "URL", hide_env_values = true)]
    #[arg(default_value = "sqlite:hapax.db")]
    pub(crate) store: String,

    #[command(flatten)]
    pub(crate) file: StoreFileArgs,

    /// Whose events were to be sent, by the name `hapax outbox list` shows.
    #[arg(long, value_name = "NAME", required_unless_present = "emitted")]
    pub(crate) destination: Option<String>,

    /// What was emitted, instead of what the outbox keeps: a file of CloudEvents in JSON lines.
    #[arg(long, value_name = "FILE", conflicts_with = "destination")]
    pub(crate) emitted: Option<PathBuf>,

    /// Where they were sent to.
    #[arg(long, value_name = "PLACE", hide_env_values = true)]
    pub(crate) at: Option<String>,

    /// The stream to read on NATS.
    #[arg(long, value_name = "NAME", requires = "at")]
    pub(crate) stream: Option<String>,

    /// What stands before topics on Kafka.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "at",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) prefix: String,

    /// The consumer who was to act on them, by its name in the inbox.
    #[arg(long, value_name = "NAME")]
    pub(crate) consumer: Option<String>,

    /// Where its inbox is, if not in the store of the outbox.
    #[arg(long, value_name = "URL", requires = "consumer")]
    pub(crate) inbox: Option<String>,

    /// A file with the id of each event that was acted on, one on each line.
    #[arg(long, value_name = "FILE", conflicts_with = "consumer")]
    pub(crate) acted: Option<PathBuf>,

    /// Everything is to have arrived: what waits or is parked is a finding, too.
    #[arg(long)]
    pub(crate) drained: bool,

    /// Nothing may have arrived twice: no relay died and no answer was lost.
    #[arg(long)]
    pub(crate) no_repeats: bool,

    /// Answer in JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}
