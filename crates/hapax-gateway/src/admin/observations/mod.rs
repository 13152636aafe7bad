//! What would have been done with requests of routes that are watched alone: counted by route and by
//! client, in this process, since it was started.

pub(super) mod documents;
mod metrics;
mod tally;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{Router, extract::State, response::Response, routing::get};
use hapax_core::Timestamp;
use hapax_engine::wall_clock;
use hapax_tower::{Observation, ObservedMemory, Observer};

pub(super) use self::metrics::write;
use self::{
    documents::{ObservationsDocument, ObservedDocument},
    tally::{CLIENTS_MAX, ObservedTally},
};
use super::{AdminState, answer};
use crate::server::Peer;

/// What is under `/v1/observations`.
pub(super) fn routes() -> Router<AdminState> {
    Router::new().route("/observations", get(show))
}

async fn show(State(state): State<AdminState>) -> Response {
    answer(&state.meters.observations().document())
}

/// Everything that was seen. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Observations {
    since: Timestamp,
    tally: Arc<Mutex<ObservedTally>>,
    observer: Observer,
}

impl Default for Observations {
    fn default() -> Self {
        let tally = Arc::<Mutex<ObservedTally>>::default();
        let counted = Arc::clone(&tally);
        let observer = Observer::telling_with_peers(
            |parts| parts.extensions.get::<Peer>().map(|peer| peer.address().ip()),
            move |seen| locked(&counted).count(seen, &client(seen)),
        );
        Self { since: wall_clock().into(), tally, observer }
    }
}

impl Observations {
    /// Who watches for it.
    pub(crate) fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// From now on these routes are observed; what was seen of others is kept.
    pub(crate) fn observe(&self, routes: Vec<String>) {
        locked(&self.tally).observe(routes);
    }

    /// All of it.
    fn document(&self) -> ObservationsDocument {
        let ObservedMemory { keys, keys_max, keys_forgotten } = self.observer.memory();
        let tally = locked(&self.tally);
        ObservationsDocument {
            since: self.since.to_string(),
            now: Timestamp::from(wall_clock()).to_string(),
            keys,
            keys_max,
            keys_forgotten,
            routes: tally.routes(),
            clients_max: CLIENTS_MAX,
            clients: tally.clients(),
            other_clients: tally.other_clients(),
        }
    }

    /// In a few figures; nothing if nothing is observed, nor was.
    pub(super) fn summary(&self) -> Option<ObservedDocument> {
        locked(&self.tally).summary(self.since)
    }
}

fn locked(tally: &Mutex<ObservedTally>) -> MutexGuard<'_, ObservedTally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a client is called: as its tenant is in records, or else by the kind of its address, which nobody
/// is found by.
fn client(seen: &Observation) -> String {
    match (&seen.tenant, seen.peer) {
        (Some(tenant), _) => tenant.as_str().to_owned(),
        (None, Some(address)) => format!("address:{}", kind(address)),
        (None, None) => "address:unknown".to_owned(),
    }
}

fn kind(address: IpAddr) -> &'static str {
    let address = address.to_canonical();
    let is_private = match address {
        IpAddr::V4(address) => address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    };
    match (address.is_loopback(), is_private) {
        (true, _) => "loopback",
        (false, true) => "private",
        (false, false) => "public",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_by_its_kind_alone() {
        for (address, kind_of) in [
            ("127.0.0.1", "loopback"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("10.1.2.3", "private"),
            ("192.168.0.7", "private"),
            ("fd00::1", "private"),
            ("fe80::1", "private"),
            ("203.0.113.9", "public"),
            ("2001:db8::1", "public"),
        ] {
            assert_eq!(kind(address.parse().unwrap()), kind_of, "{address}");
        }
    }
}
