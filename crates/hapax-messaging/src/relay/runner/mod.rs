//! The loop that reads, sends, acknowledges and leases.
//!
//! One task owns all state. Whatever it asks of the outbox or the sink is a `RelayStep` that ends
//! some time, and `ended` says what that changes; `due` says what to begin. Lanes change only
//! between reads.

mod completions;
mod timers;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::stream::{FuturesUnordered, StreamExt};
use hapax_core::{
    Owner, StoreError,
    outbox::{Destination, Lane, LaneProgress, Leases, OutboxLog, Reader, Start},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};

use self::timers::Timers;
use super::{
    Relay, episode::OutageEpisode, error::RelayError, opening::Opening, options::RelayOptions,
    queues::Queues, status::RelayCounters, step::Waiting,
};
use crate::sink::Sink;

/// The pause after the outbox could not be reached.
const OUTBOX_PAUSE: Duration = Duration::from_millis(500);
/// How long the last words to the outbox may take.
const FAREWELL_MAX: Duration = Duration::from_secs(5);

pub(super) struct Runner<O, S> {
    outbox: Arc<O>,
    sink: Arc<S>,
    opening: Opening,
    destination: Destination,
    start: Start,
    options: RelayOptions,
    counters: Arc<RelayCounters>,
    owner: Owner,
    reader: Reader,
    queues: Queues,
    steps: FuturesUnordered<Waiting>,
    errands: BTreeSet<OutboxRequest>,
    /// How many reads were begun.
    looks: u64,
    /// What was leased while a read was under way.
    leases: Option<Leases>,
    /// What was stored while a read was under way that may show it as it was before.
    acknowledged: Option<(LaneProgress, Result<Vec<Lane>, StoreError>)>,
    mode: RunnerMode,
    timers: Timers,
    /// The destination takes nothing.
    outage: OutageEpisode,
    /// The outbox cannot be reached.
    outbox_outage: OutageEpisode,
}

/// What is asked of the outbox, one at a time of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OutboxRequest {
    Read,
    Lease,
    Acknowledge,
    Release,
    Pause,
    Retire,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunnerMode {
    Sending,
    /// Somebody stopped sending to this destination.
    Paused,
    /// The relay is to end: what flies is waited for.
    Stopping,
}

impl<O: OutboxLog, S: Sink> Runner<O, S> {
    pub(super) fn new(relay: Relay<O, S>) -> Self {
        let Relay { outbox, destination, sink, opener, start, options, counters } = relay;
        Self {
            outbox,
            sink,
            opening: Opening { opener, encrypted_only: options.encrypted_only },
            destination,
            start,
            counters,
            owner: Owner::draw(),
            reader: Reader::new(),
            queues: Queues::new(options.pipes),
            steps: FuturesUnordered::new(),
            errands: BTreeSet::new(),
            looks: 0,
            leases: None,
            acknowledged: None,
            mode: RunnerMode::Sending,
            timers: Timers::new(Instant::now(), &options),
            outage: OutageEpisode::default(),
            outbox_outage: OutageEpisode::default(),
            options,
        }
    }

    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), RelayError> {
        if self.register(&mut stop).await {
            return Ok(());
        }
        loop {
            let now = Instant::now();
            self.begin_what_is_due(now);
            if self.mode == RunnerMode::Stopping && self.is_drained(now) {
                break;
            }
            self.show();
            let (stops, listens) = (self.mode != RunnerMode::Stopping, self.listens(now));
            let wake = self.wake(now);
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop), if stops => {
                    self.mode = RunnerMode::Stopping;
                    self.timers.stopped(Instant::now(), &self.options);
                }
                Some(step) = self.steps.next() => self.ended(step)?,
                () = self.outbox.rung(), if listens => self.timers.rung(Instant::now(), &self.options),
                () = sleep_until(wake) => {}
            }
        }
        self.say_farewell().await;
        Ok(())
    }

    /// Registers the destination; whether the relay was stopped before that was possible.
    async fn register(&mut self, stop: &mut watch::Receiver<bool>) -> bool {
        loop {
            let Err(error) = self.outbox.register(self.destination.clone(), self.start).await
            else {
                return false;
            };
            self.outbox_failed("register the destination", &error);
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return true,
                () = sleep(OUTBOX_PAUSE) => {}
            }
        }
    }

    /// Stores how far it came, and gives everything back. If that fails, the leases end by
    /// themselves, and what was not stored is sent again.
    async fn say_farewell(&mut self) {
        let progress = self.reader.progress();
        let name = self.destination.name();
        let words = async {
            if !progress.is_empty() {
                self.outbox.acknowledge(name, progress.clone()).await?;
            }
            self.outbox.leave(name, self.owner).await
        };
        match timeout(FAREWELL_MAX, words).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.outbox_failed("give the lanes back", &error),
            Err(_) => {
                let destination = self.destination.name();
                tracing::warn!(destination, "the outbox did not answer at the end");
            }
        }
        RelayCounters::set(&self.counters.lanes, 0);
        RelayCounters::set(&self.counters.waiting, 0);
    }

    fn outbox_failed(&mut self, what: &str, error: &StoreError) {
        RelayCounters::count(&self.counters.outbox_errors, 1);
        let destination = self.destination.name();
        if self.outbox_outage.goes_on(Instant::now()) {
            tracing::warn!(destination, %error, "could not {what}; it will be tried again");
        } else {
            tracing::debug!(destination, %error, "could not {what} either");
        }
        self.counters.set_trouble(Some(format!("could not {what}: {error}")));
    }

    fn show(&self) {
        RelayCounters::set(&self.counters.waiting, self.queues.len());
        RelayCounters::set(&self.counters.lanes, self.reader.lanes().count());
        RelayCounters::set(&self.counters.paused, usize::from(self.mode == RunnerMode::Paused));
    }
}
