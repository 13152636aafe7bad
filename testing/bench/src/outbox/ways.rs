//! The ways from a log of events to a sink that only counts.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use hapax::{
    messaging::{
        relay::{Relay, Running},
        sink::{Outage, Sink, Verdict},
    },
    outbox::{Destination, Start, Stored, Topics},
    postgres::{Outbox, OutboxOptions, Store},
};
use tokio::task::JoinHandle;
use tokio_postgres::Config;

use super::{
    event::{ArrivalChecker, PAYLOAD_SQL},
    plain::{self, Plain, PlainLoop, fill_with, numbers},
};
use crate::{error::BenchError, turns::NamedWay};

/// Who reads the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaderWay {
    /// The relay.
    Relay,
    /// A loop over a plain table.
    Plain(Plain),
}

impl ReaderWay {
    pub(super) const ALL: [Self; 4] = [
        Self::Relay,
        Self::Plain(Plain::Delete),
        Self::Plain(Plain::Mark),
        Self::Plain(Plain::Cursor),
    ];

    /// Makes the schema.
    pub(super) async fn prepare(self, config: &Config) -> Result<(), BenchError> {
        match self {
            Self::Relay => Ok(Store::migrate(config).await?),
            Self::Plain(plain) => plain::prepare(config, plain, false).await,
        }
    }

    /// Fills the log.
    pub(super) async fn fill(self, config: &Config, events: u64) -> Result<(), BenchError> {
        match self {
            Self::Relay => {
                let emit = format!(
                    "SELECT hapax.emit('orders', key::text, {PAYLOAD_SQL}) FROM {}",
                    numbers(events)
                );
                fill_with(config, &emit, events).await
            }
            Self::Plain(_) => plain::fill(config, events).await,
        }
    }

    /// Begins to send.
    pub(super) async fn start(
        self,
        config: &Config,
        checker: &Arc<ArrivalChecker>,
    ) -> Result<RunningReader, BenchError> {
        Ok(match self {
            Self::Relay => {
                let outbox = Outbox::connect(config, OutboxOptions::default()).await?;
                let destination = Destination::new("bench", Topics::all())?;
                let relay = Relay::new(outbox, destination, Counting(Arc::clone(checker)));
                RunningReader::Relay(relay.start(Start::Beginning).spawn())
            }
            Self::Plain(plain) => {
                let reader = PlainLoop::new(config, plain).await?;
                let stop = Arc::new(AtomicBool::new(false));
                let task = tokio::spawn(reader.run(Arc::clone(checker), Arc::clone(&stop)));
                RunningReader::Loop { task, stop }
            }
        })
    }
}

impl NamedWay for ReaderWay {
    fn label(self) -> &'static str {
        match self {
            Self::Relay => "hapax relay",
            Self::Plain(Plain::Delete) => "SKIP LOCKED, delete",
            Self::Plain(Plain::Mark) => "SKIP LOCKED, mark done",
            Self::Plain(Plain::Cursor) => "xid8 cursor",
        }
    }
}

/// Something that sends until it is stopped.
pub(super) enum RunningReader {
    Relay(Running),
    Loop { task: JoinHandle<Result<(), BenchError>>, stop: Arc<AtomicBool> },
}

impl RunningReader {
    pub(super) async fn stop(self) -> Result<(), BenchError> {
        match self {
            Self::Relay(running) => Ok(running.stop().await?),
            Self::Loop { task, stop } => {
                stop.store(true, Relaxed);
                task.await?
            }
        }
    }
}

/// A sink that takes everything and checks it.
struct Counting(Arc<ArrivalChecker>);

impl Sink for Counting {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        self.0.take(events.iter().map(|event| event.payload.as_ref()));
        Ok(vec![Verdict::Taken; events.len()])
    }
}
