//! What relays that run beside a gateway have done, and how far behind they are.

use std::time::Duration;

use super::exposition::Exposition;

/// One relay that runs beside a gateway, as its metrics show it.
#[derive(Debug, Clone, Default)]
pub struct RelayFigures {
    /// Which destination it serves.
    pub destination: String,
    /// Events the destination took.
    pub sent: u64,
    /// Verdicts that an event will not be taken.
    pub refused: u64,
    /// Verdicts that an event was not taken now.
    pub missed: u64,
    /// Events this relay put aside.
    pub parked: u64,
    /// Sends that met a destination that took nothing.
    pub outages: u64,
    /// Times the outbox could not be reached.
    pub store_errors: u64,
    /// Events read and not yet taken.
    pub in_memory_events: u64,
    /// Lanes it has.
    pub lanes: u64,
    /// Whether sending is stopped by somebody.
    pub paused: bool,
    /// Whether something is in the way.
    pub troubled: bool,
    /// Events that are not yet sent, over all relays.
    pub lag_events: u64,
    /// How long the oldest of them has waited.
    pub lag: Duration,
    /// Events that are put aside, over all relays.
    pub parked_events: u64,
}

/// Every metric of these relays.
pub(super) fn write(page: &mut Exposition, relays: &[RelayFigures]) {
    type Told = fn(&RelayFigures) -> u64;
    let counters: [(&str, &str, Told); 6] = [
        ("sent", "Events the destination took.", |relay| relay.sent),
        ("refused", "Verdicts that an event will not be taken.", |relay| relay.refused),
        ("missed", "Verdicts that an event was not taken now.", |relay| relay.missed),
        ("parked", "Events this relay put aside.", |relay| relay.parked),
        ("outages", "Sends that met a destination that took nothing.", |relay| relay.outages),
        ("store_errors", "Times the outbox could not be reached.", |relay| relay.store_errors),
    ];
    for (name, help, told) in counters {
        let name = format!("hapax_outbox_{name}_total");
        let family = page.counter(&name, help);
        for relay in relays {
            family.sample(&[("destination", &relay.destination)], told(relay));
        }
    }
    let gauges: [(&str, &str, Told); 4] = [
        ("in_memory_events", "Events read and not yet taken.", |relay| relay.in_memory_events),
        ("lanes", "Lanes this relay has, of 64 over all relays.", |relay| relay.lanes),
        ("paused", "1 while sending is stopped by somebody.", |relay| u64::from(relay.paused)),
        ("troubled", "1 while something is in the way.", |relay| u64::from(relay.troubled)),
    ];
    for (name, help, told) in gauges {
        let name = format!("hapax_outbox_{name}");
        let family = page.gauge(&name, help);
        for relay in relays {
            family.sample(&[("destination", &relay.destination)], told(relay));
        }
    }
    lags(page, relays);
}

fn lags(page: &mut Exposition, relays: &[RelayFigures]) {
    let help = "Events that are not yet sent, over all relays.";
    let behind = page.gauge("hapax_outbox_lag_events", help);
    for relay in relays {
        behind.sample(&[("destination", &relay.destination)], relay.lag_events);
    }
    let help = "How long the oldest event that is not yet sent has waited.";
    let age = page.gauge("hapax_outbox_lag_seconds", help);
    for relay in relays {
        age.sample(&[("destination", &relay.destination)], relay.lag.as_secs_f64());
    }
    let help = "Events that are put aside, over all relays.";
    let parked = page.gauge("hapax_outbox_parked_events", help);
    for relay in relays {
        parked.sample(&[("destination", &relay.destination)], relay.parked_events);
    }
}
