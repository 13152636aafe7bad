//! What is told about routes that are watched alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything that was seen since the gateway was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservationsDocument {
    /// Since when this process watches, by the clock of its machine: a restart begins anew.
    pub since: String,
    /// When this was told.
    pub now: String,
    /// Keys that are remembered.
    pub keys: usize,
    /// Most keys that can be.
    pub keys_max: usize,
    /// Keys that were forgotten before their retention was over, for want of room: retries of theirs were
    /// taken for new.
    pub keys_forgotten: u64,
    /// Every route that is observed, or was since then.
    pub routes: Vec<ObservedRouteDocument>,
    /// Most clients that are told apart.
    pub clients_max: usize,
    /// Each client; those that sent most a second time first.
    pub clients: Vec<ObservedClientDocument>,
    /// All clients beyond those, together.
    pub other_clients: Option<ObservedClientDocument>,
}

/// What was seen of one route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedRouteDocument {
    /// The route, as it is written in the configuration.
    pub route: String,
    /// Whether it is observed now; if not, it was.
    pub observed: bool,
    /// Requests that were seen.
    pub requests: u64,
    /// The same by what would have been done, without what never came.
    pub what: BTreeMap<String, u64>,
    /// Those that would have been refused for what they say, by code.
    pub refusals: BTreeMap<String, u64>,
    /// What was asked for once more, by what would have been done and by currency.
    pub amounts: BTreeMap<String, BTreeMap<String, f64>>,
    /// Requests that asked for something once more and do not say what they are worth, though their route
    /// names an `amount`.
    pub without_amount: u64,
}

/// What was seen of one client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedClientDocument {
    /// Its tenant as in records, or `address:` and `loopback`, `private`, `public` or `unknown`.
    pub client: String,
    /// Requests that were seen.
    pub requests: u64,
    /// Those that were sent a second time, and may have had their effect twice.
    pub repeated: u64,
    /// Requests by what would have been done, without what never came.
    pub what: BTreeMap<String, u64>,
    /// What was asked for once more, by what would have been done and by currency.
    pub amounts: BTreeMap<String, BTreeMap<String, f64>>,
}

/// All routes that are or were observed, together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedDocument {
    /// Since when this process watches.
    pub since: String,
    /// Requests by what would have been done, without what never came.
    pub what: BTreeMap<String, u64>,
    /// What was asked for once more, by currency.
    pub amounts: BTreeMap<String, f64>,
}
