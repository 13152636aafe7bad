//! Sends what was committed, in order per key, until it was taken.
//!
//! A [`Relay`] leases lanes of one destination, reads their events and hands them to a sink, outside
//! any transaction. What was taken is acknowledged some times a second, many events at once; what
//! was sent and not yet acknowledged when a relay dies is sent again by the next one, with the same
//! ids.
//!
//! - `options`: how patient it is, and what becomes of events that are not taken;
//! - `queues`: which events are on their way, and what follows from each verdict; no IO, no clock;
//! - `pipe`: one of the streams in which they go, `stuck_key`: a key that is stuck in it,
//!   `parking_keys`: those whose events are being parked;
//! - `runner`: the loop that reads, sends, acknowledges and leases; `step`: what it waits for;
//! - `opening`: encrypted events, which a sink is given in the clear or not at all;
//! - `config`: what it is told about a destination;
//! - `status`: what can be seen from outside, `meter`: that and how far behind it is.

mod config;
mod episode;
mod error;
mod meter;
mod opening;
mod options;
mod parking_keys;
mod pipe;
mod queues;
mod runner;
mod status;
mod step;
mod stuck_key;

use std::sync::Arc;

use hapax_core::outbox::{Destination, EventOpener, OutboxLog, Start};
use tokio::{sync::watch, task::JoinHandle};

pub use self::{
    config::{ON_FAILURE, RELAY_LEASE_MIN, RELAY_SETTINGS, RelayConfig, secrets_in},
    error::RelayError,
    meter::RelayMeter,
    options::{OnFailure, RelayOptions},
    status::{RelayStatus, StatusHandle},
};
use self::{runner::Runner, status::RelayCounters};
use crate::sink::Sink;

/// Sends the events of one destination to one sink.
///
/// ```
/// use hapax_core::{
///     Event,
///     outbox::{Destination, Topics, memory::Outbox},
/// };
/// use hapax_messaging::{relay::Relay, sink::Lines};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let outbox = Outbox::new(|| hapax_engine::wall_clock().into());
/// outbox.emit(&[Event::new("orders.placed", "order-17", r#"{"customer":"ada"}"#)?]);
///
/// let shipping = Destination::new("shipping", Topics::parse(["orders.*"])?)?;
/// let relay = Relay::new(outbox, shipping, Lines::to(tokio::io::sink())).spawn();
/// while relay.status().sent < 1 {
///     tokio::task::yield_now().await;
/// }
/// relay.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Relay<O, S> {
    outbox: Arc<O>,
    destination: Destination,
    sink: Arc<S>,
    opener: Option<Arc<dyn EventOpener>>,
    start: Start,
    options: RelayOptions,
    counters: Arc<RelayCounters>,
}

impl<O: OutboxLog, S: Sink> Relay<O, S> {
    /// A relay that begins, where the destination is new, with the oldest event that is kept.
    pub fn new(outbox: impl Into<Arc<O>>, destination: Destination, sink: S) -> Self {
        Self {
            outbox: outbox.into(),
            destination,
            sink: Arc::new(sink),
            opener: None,
            start: Start::Beginning,
            options: RelayOptions::default(),
            counters: Arc::default(),
        }
    }

    /// Where a new destination begins; one that is known goes on from where it is.
    #[must_use]
    pub fn start(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// Who opens encrypted events. Without anybody they wait, and an outage says why.
    #[must_use]
    pub fn opening(self, opener: Arc<dyn EventOpener>) -> Self {
        Self { opener: Some(opener), ..self }
    }

    /// How patient it is, and what becomes of events that are not taken.
    #[must_use]
    pub fn options(self, options: RelayOptions) -> Self {
        Self { options, ..self }
    }

    /// What can be seen of it while it runs.
    pub fn status(&self) -> StatusHandle {
        StatusHandle::new(self.destination.name().to_owned(), Arc::clone(&self.counters))
    }

    /// Registers the destination and sends until `stop` says so or its sender is gone; then waits
    /// for what is under way, stores how far it came, and gives its lanes back.
    ///
    /// While the outbox cannot be reached it tries again. It ends by itself only when the
    /// destination was removed.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), RelayError> {
        self.options.check()?;
        Runner::new(self).run(stop).await
    }

    /// The same, in a task of its own.
    pub fn spawn(self) -> Running {
        let (stop, stopped) = watch::channel(false);
        let status = self.status();
        Running { stop, status, task: tokio::spawn(self.run(stopped)) }
    }
}

/// A relay in a task of its own. Dropped, it stops as if it had been asked to.
///
/// ```
/// use hapax_messaging::relay::{RelayError, Running};
///
/// async fn end(relay: Running) -> Result<(), RelayError> {
///     println!("{} events were taken", relay.status().sent);
///     relay.stop().await
/// }
/// ```
#[derive(Debug)]
pub struct Running {
    stop: watch::Sender<bool>,
    status: StatusHandle,
    task: JoinHandle<Result<(), RelayError>>,
}

impl Running {
    /// What it has done so far.
    pub fn status(&self) -> RelayStatus {
        self.status.now()
    }

    /// Asks it to end and waits until it has.
    pub async fn stop(self) -> Result<(), RelayError> {
        // It may have ended by itself.
        let _ = self.stop.send(true);
        self.task.await.unwrap_or(Err(RelayError::Panicked))
    }
}
