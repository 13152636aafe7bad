//! What relays that run beside a gateway have done, and how far behind they are.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use hapax_core::outbox::Lag;
use hapax_messaging::relay::{RelayStatus, StatusHandle};

use super::exposition::Exposition;

/// One relay, as metrics show it. Clones show the same one.
#[derive(Debug, Clone)]
pub struct RelayMeter {
    status: StatusHandle,
    behind: Arc<Behind>,
}

#[derive(Debug, Default)]
struct Behind {
    events: AtomicU64,
    micros: AtomicU64,
    parked: AtomicU64,
}

impl RelayMeter {
    /// Of the relay with this status.
    pub fn new(status: StatusHandle) -> Self {
        Self { status, behind: Arc::default() }
    }

    /// What the relay has done.
    pub fn status(&self) -> RelayStatus {
        self.status.now()
    }

    /// How far behind its destination was a moment ago: shown until the next is told.
    pub fn observe(&self, lag: &Lag) {
        self.behind.events.store(lag.events(), Relaxed);
        self.behind.parked.store(lag.parked, Relaxed);
        let micros = u64::try_from(lag.age().as_micros()).unwrap_or(u64::MAX);
        self.behind.micros.store(micros, Relaxed);
    }

    /// How many events its destination was behind when that was last told.
    pub fn events_behind(&self) -> u64 {
        self.behind.events.load(Relaxed)
    }

    /// How many events were parked for its destination when that was last told.
    pub fn parked(&self) -> u64 {
        self.behind.parked.load(Relaxed)
    }
}

/// Every metric of these relays.
pub(super) fn write(page: &mut Exposition, relays: &[RelayMeter]) {
    let statuses: Vec<_> = relays.iter().map(|relay| (relay, relay.status.now())).collect();
    type Told = fn(&RelayStatus) -> u64;
    let counters: [(&str, &str, Told); 6] = [
        ("sent", "Events the destination took.", |status| status.sent),
        ("refused", "Verdicts that an event will not be taken.", |status| status.refused),
        ("missed", "Verdicts that an event was not taken now.", |status| status.missed),
        ("parked", "Events this relay put aside.", |status| status.parked),
        ("outages", "Sends that met a destination that took nothing.", |status| status.outages),
        ("store_errors", "Times the outbox could not be reached.", |status| status.outbox_errors),
    ];
    for (name, help, told) in counters {
        let name = format!("hapax_outbox_{name}_total");
        let mut family = page.counter(&name, help);
        for (_, status) in &statuses {
            family.sample(&[("destination", &status.destination)], told(status));
        }
    }
    let gauges: [(&str, &str, Told); 4] = [
        ("in_memory_events", "Events read and not yet taken.", |status| status.waiting),
        ("lanes", "Lanes this relay has, of 64 over all relays.", |status| status.lanes),
        ("paused", "1 while sending is stopped by somebody.", |status| status.paused.into()),
        ("troubled", "1 while something is in the way.", |status| status.trouble.is_some().into()),
    ];
    for (name, help, told) in gauges {
        let name = format!("hapax_outbox_{name}");
        let mut family = page.gauge(&name, help);
        for (_, status) in &statuses {
            family.sample(&[("destination", &status.destination)], told(status));
        }
    }
    lags(page, &statuses);
}

fn lags(page: &mut Exposition, relays: &[(&RelayMeter, RelayStatus)]) {
    let help = "Events that are not yet sent, over all relays.";
    let mut behind = page.gauge("hapax_outbox_lag_events", help);
    for (relay, status) in relays {
        behind.sample(&[("destination", &status.destination)], relay.events_behind());
    }
    let help = "How long the oldest event that is not yet sent has waited.";
    let mut age = page.gauge("hapax_outbox_lag_seconds", help);
    for (relay, status) in relays {
        let seconds = std::time::Duration::from_micros(relay.behind.micros.load(Relaxed));
        age.sample(&[("destination", &status.destination)], seconds.as_secs_f64());
    }
    let help = "Events that are put aside, over all relays.";
    let mut parked = page.gauge("hapax_outbox_parked_events", help);
    for (relay, status) in relays {
        parked.sample(&[("destination", &status.destination)], relay.parked());
    }
}
