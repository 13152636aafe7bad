//! `hapax relay`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, value_parser};
use hapax::limits::RETRY_ATTEMPTS_MAX;
use hapax_core::outbox::{Destination, InvalidDestination, Start, Topics};
use hapax_messaging::{
    relay::OnFailure,
    sink::{CloudEvents, InvalidSinkAddress, SinkAddress, cloudevent::InvalidSource},
};

use super::{LogArgs, MasterKeyArgs, StoreFileArgs};

/// Send what was emitted to where it is wanted: if and only if it was committed, in order per key.
///
/// Several relays of one name share the work, on one machine or many: if one dies, another goes on
/// within a lease, and what was under way is sent again with the same ids. A destination that is
/// down is waited for. What it refuses is tried again, then parked (see `hapax outbox`). Encrypted
/// events are sent in the clear, given the master key; without it they wait.
#[derive(Debug, Args)]
#[command(after_help = "\
Destinations:
  stdout:                                        one CloudEvent in JSON on each line
  https://host/path                              a webhook, signed with --secret-file or --secret-env
  kafka://host:port,host:port                    a Kafka topic for each topic
  kafka+ssl://user:password@host:port?sasl=SCRAM-SHA-512&ca=FILE
                                                 over TLS; sasl is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
  nats://host:port                               a JetStream subject for each topic
  amqp://user:password@host/vhost                a RabbitMQ exchange: --exchange
  sqs+https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.fifo

Examples:
  hapax relay --store sqlite:shop.db --to stdout:
  hapax relay --store postgres://owner@db/shop --to nats://127.0.0.1:4222 --topics 'orders.*'
  hapax relay --to https://billing.example.com/events --secret-env BILLING_SECRET --name billing
  hapax relay --config relay.toml

Signals: SIGTERM and Ctrl-C let what is under way finish, then end; a second one ends at once.
Exit status: 0 when it was told to stop and everything finished, 1 otherwise.")]
pub(crate) struct RelayArgs {
    /// Where the outbox is: sqlite:PATH or postgres://user@host:port/database; sqlite:hapax.db
    /// unless the file says otherwise.
    #[arg(long, env = "HAPAX_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) store: Option<String>,

    #[command(flatten)]
    pub(crate) file: StoreFileArgs,

    /// Where events are sent.
    #[arg(long, env = "HAPAX_RELAY_TO", value_name = "DESTINATION", hide_env_values = true)]
    #[arg(required_unless_present = "config", value_parser = address)]
    pub(crate) to: Option<SinkAddress>,

    /// Follow PostgreSQL's log (logical replication) instead of asking its table; the table is read
    /// whenever the log cannot be. Needs `wal_level = logical` and a limit on what slots may keep.
    #[arg(long)]
    pub(crate) follow: bool,

    /// Several destinations, as a TOML file with `[[destination]]` tables.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "to", "name", "topics", "from", "on_failure", "encrypted_only", "attempts", "refusals", "source", "secret_env",
        "secret_file", "exchange", "prefix", "lease",
    ])]
    pub(crate) config: Option<PathBuf>,

    /// The name its progress is kept under; the address without its password, and the topics,
    /// unless said otherwise.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,

    /// Which topics: names, beginnings such as 'orders.*', or '*'; all of them unless said otherwise.
    #[arg(long, value_name = "TOPIC", value_delimiter = ',', num_args = 1.., value_parser = topic)]
    pub(crate) topics: Vec<String>,

    /// Where a new destination begins; one that is known goes on from where it is.
    #[arg(long, value_enum, default_value_t = From::Beginning)]
    pub(crate) from: From,

    /// What becomes of an event that is not taken.
    #[arg(long, value_enum, default_value_t = Failing::ParkTail)]
    pub(crate) on_failure: Failing,

    /// Park events that are not encrypted instead of sending them: somebody forgot to encrypt them.
    #[arg(long)]
    pub(crate) encrypted_only: bool,

    /// How often an event is tried that was not answered, before that [default: 10].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(RETRY_ATTEMPTS_MAX)))]
    pub(crate) attempts: Option<u32>,

    /// How often an event is tried that was refused, before that [default: 3].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(RETRY_ATTEMPTS_MAX)))]
    pub(crate) refusals: Option<u32>,

    /// What events say about where they come from: a URI reference such as /shop/orders.
    #[arg(long, value_name = "URI", value_parser = source)]
    pub(crate) source: Option<CloudEvents>,

    /// The variable that holds the secrets webhooks are signed with, the newest first.
    #[arg(long, value_name = "VARIABLE", conflicts_with = "secret_file")]
    pub(crate) secret_env: Option<String>,

    /// The file that holds them, one on each line.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// The exchange of RabbitMQ; without it each event goes to the queue called like its topic.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(crate) exchange: String,

    /// What is put before topics on NATS and Kafka, such as 'shop.'.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,

    /// How long others wait before they take over from a relay that died; at least 1s.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = super::duration)]
    pub(crate) lease: Duration,

    /// Where health, readiness and metrics are, such as 127.0.0.1:8082; nowhere unless this or the file says so.
    #[arg(long, env = "HAPAX_RELAY_ADMIN", value_name = "ADDRESS")]
    pub(crate) admin: Option<SocketAddr>,

    /// How often to say how far it is; nothing is said while nothing happens.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = super::duration)]
    pub(crate) every: Duration,

    #[command(flatten)]
    pub(crate) keys: MasterKeyArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// Where a new destination begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    /// With the oldest event that is still kept.
    Beginning,
    /// With what is emitted from now on.
    Now,
}

impl From {
    pub(crate) fn start(self) -> Start {
        match self {
            Self::Beginning => Start::Beginning,
            Self::Now => Start::Now,
        }
    }
}

/// What becomes of an event that is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Failing {
    /// It is tried for ever, and its key waits.
    Block,
    /// It is parked, and its key goes on without it.
    ParkMessage,
    /// It is parked, and so are later events of its key, to be replayed in order.
    ParkTail,
}

impl Failing {
    pub(crate) fn policy(self) -> OnFailure {
        match self {
            Self::Block => OnFailure::Block,
            Self::ParkMessage => OnFailure::ParkMessage,
            Self::ParkTail => OnFailure::ParkTail,
        }
    }
}

fn address(raw: &str) -> Result<SinkAddress, InvalidSinkAddress> {
    raw.parse()
}

fn name(raw: &str) -> Result<String, InvalidDestination> {
    Destination::new(raw, Topics::all()).map(|named| named.name().to_owned())
}

fn topic(raw: &str) -> Result<String, InvalidDestination> {
    Topics::parse([raw]).map(|_| raw.to_owned())
}

fn source(raw: &str) -> Result<CloudEvents, InvalidSource> {
    CloudEvents::from_source(raw)
}
