//! What the clients and the API of one place saw of each key. No store records that: a store keeps
//! how an operation began and what became of it, not who asked in between.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hapax::{Timestamp, wall_clock};
use serde::Serialize;

/// Most events that are kept of one key; further ones are only counted.
const EVENTS_MAX: usize = 60;

/// Where customers pay.
#[derive(Debug, Clone)]
pub(super) struct Storefront {
    pub(super) address: SocketAddr,
    pub(super) traffic: Arc<TrafficLog>,
}

/// Every request for each key, as far as the demo's own clients and API saw it.
#[derive(Debug, Default)]
pub(super) struct TrafficLog(Mutex<HashMap<String, KeyTraffic>>);

/// What was seen of one key.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyTraffic {
    /// Requests that the demo's clients sent.
    pub(super) requests: u64,
    /// How many of them were answered from the record.
    pub(super) replays: u64,
    pub(super) events: Vec<TrafficEvent>,
    /// Events that were only counted.
    pub(super) not_kept: u64,
}

/// Something that a client or the API saw.
#[derive(Debug, Clone)]
pub(super) struct TrafficEvent {
    pub(super) at: Timestamp,
    pub(super) witness: Witness,
    pub(super) what: String,
}

/// Who saw something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Witness {
    /// The gateway's store, as its admin API tells.
    Store,
    /// A client of the demo.
    Client,
    /// The shop behind the gateway.
    Shop,
    /// The demo, which kills the gateway and starts it again.
    Demo,
}

/// A request that was sent and is not answered yet.
#[derive(Debug)]
pub(super) struct SentRequest {
    number: u64,
    /// Where its event is, if it was kept.
    event: Option<usize>,
}

impl TrafficLog {
    /// Notes that a client sends a request.
    pub(super) fn sent(&self, key: &str) -> SentRequest {
        let mut keys = self.keys();
        let traffic = keys.entry(key.to_owned()).or_default();
        traffic.requests += 1;
        let number = traffic.requests;
        let event = traffic.note(Witness::Client, format!("request {number}: no answer yet"));
        SentRequest { number, event }
    }

    /// Notes what its client heard.
    pub(super) fn heard(&self, key: &str, request: &SentRequest, what: &str, replayed: bool) {
        let mut keys = self.keys();
        let Some(traffic) = keys.get_mut(key) else { return };
        traffic.replays += u64::from(replayed);
        let event = request.event.and_then(|at| traffic.events.get_mut(at));
        if let Some(event) = event {
            event.what = format!("request {}: {what}", request.number);
        }
    }

    /// Notes what the shop did.
    pub(super) fn shop(&self, key: &str, what: String) {
        self.keys().entry(key.to_owned()).or_default().note(Witness::Shop, what);
    }

    pub(super) fn of(&self, key: &str) -> KeyTraffic {
        self.keys().get(key).cloned().unwrap_or_default()
    }

    /// Requests for a key and how many of them were replayed.
    pub(super) fn counts(&self, key: &str) -> (u64, u64) {
        self.keys().get(key).map_or((0, 0), |traffic| (traffic.requests, traffic.replays))
    }

    /// Requests for all of these keys.
    pub(super) fn requests(&self, of: &HashSet<String>) -> u64 {
        let keys = self.keys();
        of.iter().filter_map(|key| keys.get(key)).map(|traffic| traffic.requests).sum()
    }

    /// Requests for all keys.
    pub(super) fn all_requests(&self) -> u64 {
        self.keys().values().map(|traffic| traffic.requests).sum()
    }

    /// A note is one push, so a poisoned log is still right.
    fn keys(&self) -> MutexGuard<'_, HashMap<String, KeyTraffic>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyTraffic {
    fn note(&mut self, witness: Witness, what: String) -> Option<usize> {
        if self.events.len() == EVENTS_MAX {
            self.not_kept += 1;
            return None;
        }
        self.events.push(TrafficEvent { at: now(), witness, what });
        Some(self.events.len() - 1)
    }
}

/// The clock of this machine, which the gateway's SQLite store goes by as well.
pub(super) fn now() -> Timestamp {
    wall_clock().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_counted_and_the_first_events_are_kept() {
        let log = TrafficLog::default();
        for number in 0..100 {
            let sent = log.sent("k");
            log.heard("k", &sent, "201, replayed", number > 0);
        }
        let traffic = log.of("k");
        assert_eq!((traffic.requests, traffic.replays), (100, 99));
        assert_eq!((traffic.events.len(), traffic.not_kept), (EVENTS_MAX, 40));
        assert_eq!(traffic.events[1].what, "request 2: 201, replayed");
        assert_eq!(log.counts("another"), (0, 0));
    }
}
