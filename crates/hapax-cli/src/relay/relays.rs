//! Relays that run side by side.

use std::{sync::Arc, time::Duration};

use hapax_core::outbox::{EventOpener, OutboxAdmin, Start};
use hapax_gateway::admin::RelayFigures;
use hapax_messaging::{
    relay::{Relay, RelayConfig, RelayError, RelayMeter},
    sink::{AnySink, SinkError},
};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};

use crate::store::AnyOutbox;

/// How often it is looked how far behind each destination is. The answer counts what waits, so it
/// is not for nothing.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Relays of one outbox. Dropped, they stop as if they had been asked to.
pub(crate) struct Relays {
    stop: watch::Sender<bool>,
    relays: JoinSet<(String, Result<(), RelayError>)>,
    meters: Vec<RelayMeter>,
    greeting: Vec<String>,
    watcher: JoinHandle<()>,
}

/// What happened to relays that nobody told to stop.
pub(crate) enum RelaysEnded {
    /// One of them is gone, the others go on.
    One { name: String, error: RelayError },
    /// None is left.
    All,
}

impl Relays {
    /// Starts them all, or none if one cannot be.
    pub(crate) fn start(
        outbox: &AnyOutbox,
        opener: Option<&Arc<dyn EventOpener>>,
        destinations: Vec<RelayConfig>,
    ) -> Result<Self, SinkError> {
        let (stop, stopped) = watch::channel(false);
        let mut manned = Vec::new();
        for config in destinations {
            manned.push((AnySink::new(&config)?, config));
        }
        let (mut relays, mut meters, mut greeting) = (JoinSet::new(), Vec::new(), Vec::new());
        for (sink, config) in manned {
            greeting.push(greet(&config));
            let name = config.destination.name().to_owned();
            let mut relay = Relay::new(outbox.clone(), config.destination, sink)
                .start(config.start)
                .options(config.options);
            if let Some(opener) = opener {
                relay = relay.opening(Arc::clone(opener));
            }
            meters.push(RelayMeter::new(relay.status()));
            let stopped = stopped.clone();
            relays.spawn(async move { (name, relay.run(stopped).await) });
        }
        let watcher = tokio::spawn(watch_lag(outbox.clone(), meters.clone()));
        Ok(Self { stop, relays, meters, greeting, watcher })
    }

    /// What they have done so far.
    pub(crate) fn meters(&self) -> Vec<RelayMeter> {
        self.meters.clone()
    }

    /// A line about each of them.
    pub(crate) fn greeting(&self) -> &[String] {
        &self.greeting
    }

    /// Ends when one of them does by itself.
    pub(crate) async fn ended(&mut self) -> RelaysEnded {
        match self.relays.join_next().await {
            None | Some(Ok((_, Ok(())))) => RelaysEnded::All,
            Some(Ok((name, Err(error)))) => RelaysEnded::One { name, error },
            Some(Err(_)) => {
                RelaysEnded::One { name: "a relay".to_owned(), error: RelayError::Panicked }
            }
        }
    }

    /// Lets them finish; whether all did as they should.
    pub(crate) async fn stop(&mut self) -> bool {
        // Those that ended by themselves hear nothing.
        let _ = self.stop.send(true);
        let mut well = true;
        while let Some(ended) = self.relays.join_next().await {
            well &= matches!(ended, Ok((_, Ok(()))));
        }
        self.watcher.abort();
        well
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// What the gateway's metrics show of these relays.
pub(crate) fn figures(meters: &[RelayMeter]) -> Vec<RelayFigures> {
    let figures = meters.iter().map(|meter| {
        let status = meter.status();
        RelayFigures {
            destination: status.destination,
            sent: status.sent,
            refused: status.refused,
            missed: status.missed,
            parked: status.parked,
            outages: status.outages,
            store_errors: status.outbox_errors,
            in_memory_events: status.waiting,
            lanes: status.lanes,
            paused: status.paused,
            troubled: status.trouble.is_some(),
            lag_events: meter.events_behind(),
            lag: meter.age(),
            parked_events: meter.parked(),
        }
    });
    figures.collect()
}

fn greet(config: &RelayConfig) -> String {
    let from = match config.start {
        Start::Beginning => "the oldest event that is kept",
        Start::Now => "now",
    };
    format!("relay {config}; if it is new, it begins with {from}")
}

async fn watch_lag(outbox: AnyOutbox, meters: Vec<RelayMeter>) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for meter in &meters {
            // While the outbox cannot be reached, what was last seen is shown.
            if let Ok(Some(lag)) = outbox.lag(&meter.status().destination).await {
                meter.observe(&lag);
            }
        }
    }
}
