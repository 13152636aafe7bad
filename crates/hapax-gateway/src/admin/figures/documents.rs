//! What is told about the gateway as a whole.

use std::collections::BTreeMap;

use hapax_core::clock::ClockReading;
use hapax_engine::Named;
use serde::{Deserialize, Serialize};

use crate::admin::{
    observations::documents::ObservedDocument, quarantine::documents::QuarantineDocument,
};

/// Somebody who signs in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginDocument {
    /// One of the gateway's tokens.
    pub token: String,
}

impl std::fmt::Debug for LoginDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoginDocument(..)")
    }
}

/// Who somebody is to this gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDocument {
    /// Whether the gateway has a token that people can sign in by.
    pub configured: bool,
    /// Who else signs people in.
    pub provider: Option<ProviderDocument>,
    /// What they may do, `read` or `operate`; nothing before they sign in.
    pub role: Option<String>,
    /// Who they are, if the provider said so: what is kept with each of their changes.
    pub person: Option<String>,
    /// The version of the gateway.
    pub version: String,
}

/// Who signs people in, beside the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderDocument {
    /// What people know it as.
    pub called: String,
    /// Whether it did not answer when it was last asked, within the last minute.
    pub away: bool,
}

/// The gateway now, and in the last hour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverviewDocument {
    /// What is counted now.
    pub now: FiguresDocument,
    /// How many seconds lie between two samples.
    pub sample_seconds: u64,
    /// How many samples are kept.
    pub samples_max: usize,
    /// What happened, the oldest first.
    pub samples: Vec<SampleDocument>,
}

/// What a gateway has counted since it was started, and what it is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FiguresDocument {
    /// When it was counted, by the clock of this machine.
    pub at: String,
    /// For how long the gateway has run.
    pub uptime_seconds: u64,
    /// Whether it was told to stop.
    pub draining: bool,
    /// Requests being worked on.
    pub in_flight: u64,
    /// Connections of clients that are open.
    pub connections: u64,
    /// Requests by verdict, without those that never came.
    pub verdicts: BTreeMap<String, u64>,
    /// The same for each route.
    pub routes: Vec<RouteDocument>,
    /// What was not done again, by currency: requests that were answered with a stored success and say
    /// what they are worth.
    pub repeated_amounts: BTreeMap<String, f64>,
    /// What would have been done with requests of routes that are watched alone; nothing if none is.
    pub observed: Option<ObservedDocument>,
    /// Keys in doubt, once somebody has looked.
    pub in_doubt: Option<DoubtsDocument>,
    /// Why keys that are not in the store are not run; nothing if they are.
    #[serde(default)]
    pub quarantine: Option<QuarantineDocument>,
    /// Relays that run inside this gateway.
    pub relays: Vec<RelayDocument>,
    /// The newest sample, if there is one.
    pub sample: Option<SampleDocument>,
}

/// The requests of one route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteDocument {
    /// The route, as it is written in the configuration.
    pub route: String,
    /// By verdict, without those that never came.
    pub verdicts: BTreeMap<String, u64>,
}

/// Keys in doubt, as they are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoubtsDocument {
    /// How many there are.
    pub keys: u64,
    /// For how long the oldest has been in doubt.
    pub oldest_seconds: f64,
    /// How long ago they were looked for.
    pub looked_seconds: f64,
}

/// Keys in doubt of one route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteDoubtsDocument {
    /// The route, or `elsewhere`.
    pub route: String,
    /// How many, by how long they have been.
    pub by_age: BTreeMap<String, u64>,
    /// For how long the oldest has been in doubt.
    pub oldest_seconds: f64,
}

/// A relay that runs inside this gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayDocument {
    /// Which destination it serves.
    pub destination: String,
    /// Events the destination took.
    pub sent: u64,
    /// Events it put aside.
    pub parked: u64,
    /// Events that are not yet sent, over all relays.
    pub lag_events: u64,
    /// How long the oldest of them has waited.
    pub lag_seconds: f64,
    /// Whether something is in the way.
    pub troubled: bool,
}

/// What happened between two looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleDocument {
    /// When the latter was, by the clock of this machine.
    pub at: String,
    /// How long after the former.
    pub seconds: f64,
    /// Requests by verdict, without those that did not come.
    pub verdicts: BTreeMap<String, u64>,
    /// Keys by the state they entered through this gateway: `running`, `completed`, `failed`, `released`, `in_doubt`.
    #[serde(default)]
    pub entered: BTreeMap<String, u64>,
    /// Requests being worked on at the end.
    pub in_flight: u64,
    /// Keys in doubt at the end, once somebody has looked.
    pub in_doubt: Option<u64>,
    /// How long requests took that were run.
    pub executed: Option<SpreadDocument>,
    /// How long requests took that were answered from what is stored.
    pub replayed: Option<SpreadDocument>,
    /// How long the upstream took.
    pub upstream: Option<SpreadDocument>,
    /// How long the store took to commit a batch.
    pub commit: Option<SpreadDocument>,
}

/// How durations are spread, estimated from a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpreadDocument {
    /// How many there were.
    pub count: u64,
    /// Half of them took no longer, in milliseconds.
    pub p50_ms: f64,
    /// 99 of 100 took no longer, in milliseconds.
    pub p99_ms: f64,
}

/// What the gateway does by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HousekeepingDocument {
    /// How far the store's clock is trusted.
    pub clock: ClockDocument,
    /// What the sweeper and the purger have done since the gateway was started.
    pub counts: Vec<CountDocument>,
    /// When they did something, the newest first.
    pub log: Vec<DeedDocument>,
    /// Keys in doubt, by route.
    pub in_doubt: Vec<RouteDoubtsDocument>,
    /// How long ago they were looked for; nothing if nobody has yet.
    pub looked_seconds: Option<f64>,
    /// Configurations that were put in force while it ran.
    pub reloads_applied: u64,
    /// Configurations that were refused while it ran.
    pub reloads_refused: u64,
}

/// The store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockDocument {
    /// What it says.
    pub now: String,
    /// Whether retention is judged by what it says now.
    pub is_trusted: bool,
    /// Since when it has gone steadily; nothing if nobody ever watched it.
    pub steady_since: Option<String>,
    /// Up to where it is trusted.
    pub trusted_until: Option<String>,
}

/// A count with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountDocument {
    /// What it is called in metrics, without `hapax_` and `_total`.
    pub name: String,
    /// What is counted.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// Something housekeeping did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeedDocument {
    /// When it was seen, by the clock of this machine.
    pub at: String,
    /// What it is called in metrics.
    pub name: String,
    /// What was done.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationDocument {
    /// The version of the gateway.
    pub version: String,
    /// What `hapax check-config` says of it, without anything secret.
    pub lines: Vec<String>,
}

impl ClockDocument {
    pub(super) fn of(reading: &ClockReading) -> Self {
        Self {
            now: reading.now.to_string(),
            is_trusted: reading.trusted() >= reading.now,
            steady_since: reading.mark.map(|mark| mark.steady_since.to_string()),
            trusted_until: reading.mark.map(|mark| mark.trusted_until.to_string()),
        }
    }
}

impl CountDocument {
    pub(super) fn of(stat: Named) -> Self {
        Self { name: stat.name.to_owned(), what: stat.help.to_owned(), count: stat.count }
    }
}
