//! Events that are encrypted before they are emitted, and sent in the clear.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_core::{
    Event,
    outbox::{
        Destination, EventOpener, OutboxAdmin, Parked, ParkedPage, Selection, Stored, Topics,
    },
};
use hapax_encryption::OpenedOutbox;
use hapax_messaging::{
    relay::{OnFailure, Relay, RelayOptions, Running},
    sink::{Outage, Sink, Verdict},
};
use tokio::time::sleep;

use super::base::{MASTER, Vault, tenant_of};
use crate::consumer::on_every_base;

on_every_base! {
    an_encrypted_event_is_nowhere_in_the_clear_and_arrives_with_its_headers,
    ciphertext_that_was_moved_altered_or_made_up_is_parked_and_never_sent,
    events_of_an_erased_tenant_are_parked_and_told_and_others_go_on,
    without_the_key_nothing_is_sent_and_no_attempt_is_spent,
    parked_events_are_shown_in_the_clear_to_whoever_has_the_keys,
    where_only_encrypted_events_are_sent_others_are_parked,
}

const NAME: &str = "shipping";
const SECRET: &str = "ada lives at 12 St James's Square";
const SECRET_HEADER: &str = "what a header says of ada";

/// A place that keeps what it is sent, and refuses what it is told to.
#[derive(Clone, Default)]
struct Arrivals {
    events: Arc<Mutex<Vec<Stored>>>,
    refused: Arc<Mutex<HashSet<String>>>,
}

impl Sink for Arrivals {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        let refused = self.refused.lock().unwrap();
        let verdict = |event: &Stored| {
            assert!(!event.is_sealed(), "ciphertext was sent");
            if refused.contains(&event.key) {
                return Verdict::Refused("not this one".to_owned());
            }
            self.events.lock().unwrap().push(event.clone());
            Verdict::Taken
        };
        Ok(events.iter().map(verdict).collect())
    }
}

impl Arrivals {
    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> =
            self.events.lock().unwrap().iter().map(|event| event.key.clone()).collect();
        keys.sort();
        keys
    }

    async fn until(&self, count: usize) {
        while self.events.lock().unwrap().len() < count {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

fn event(key: &str) -> Event {
    let event = Event::new("orders", key, SECRET).unwrap().content_type("text/plain").unwrap();
    let event = event.header("who", SECRET_HEADER).unwrap();
    event.header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap()
}

async fn sealed<V: Vault>(vault: &V, tenant: &str, key: &str) -> Event {
    let sealer = vault.keys(MASTER).await.sealer(&tenant_of(tenant)).await.unwrap();
    sealer.seal(&event(key)).unwrap()
}

async fn relay<V: Vault>(
    vault: &V,
    to: &Arrivals,
    opener: Option<Arc<dyn EventOpener>>,
) -> Running {
    relay_that(vault, to, opener, RelayOptions::default()).await
}

async fn relay_that<V: Vault>(
    vault: &V,
    to: &Arrivals,
    opener: Option<Arc<dyn EventOpener>>,
    options: RelayOptions,
) -> Running {
    let shipping = Destination::new(NAME, Topics::all()).unwrap();
    let options = RelayOptions { refusals_max: 1, ..options };
    let relay = Relay::new(vault.outbox().await, shipping, to.clone()).options(options);
    match opener {
        Some(opener) => relay.opening(opener).spawn(),
        None => relay.spawn(),
    }
}

async fn opener<V: Vault>(vault: &V) -> Option<Arc<dyn EventOpener>> {
    Some(Arc::new(vault.keys(MASTER).await))
}

async fn parked(outbox: &impl OutboxAdmin) -> Vec<Parked> {
    let page = ParkedPage { after: 0, limit: 100 };
    outbox.parked(NAME, Selection::All, page).await.unwrap()
}

async fn until_parked(outbox: &impl OutboxAdmin, count: usize) -> Vec<Parked> {
    loop {
        let parked = parked(outbox).await;
        if parked.len() >= count {
            return parked;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

async fn an_encrypted_event_is_nowhere_in_the_clear_and_arrives_with_its_headers<V: Vault>() {
    let (vault, arrivals) = (V::create().await, Arrivals::default());
    vault.emit(sealed(&vault, "acme", "k").await).await;
    vault.emit(Event::new("orders", "clear", "as it is").unwrap()).await;
    assert!(vault.holds("as it is").await, "what is clear would be found");
    for secret in [SECRET, SECRET_HEADER, "text/plain"] {
        assert!(!vault.holds(secret).await, "{secret}");
    }
    let relay = relay(&vault, &arrivals, opener(&vault).await).await;
    arrivals.until(2).await;
    relay.stop().await.unwrap();
    assert_eq!(arrivals.keys(), ["clear", "k"]);
    let events = arrivals.events.lock().unwrap();
    let arrived = events.iter().find(|event| event.key == "k").unwrap();
    assert_eq!((&*arrived.topic, &*arrived.content_type), ("orders", "text/plain"));
    assert_eq!(arrived.payload, SECRET);
    let headers: Vec<_> = arrived.headers.iter().map(|header| &*header.name).collect();
    assert_eq!(headers, ["traceparent", "who"]);
    assert_eq!(arrived.headers[1].value, SECRET_HEADER);
}

async fn ciphertext_that_was_moved_altered_or_made_up_is_parked_and_never_sent<V: Vault>() {
    let (vault, arrivals) = (V::create().await, Arrivals::default());
    let genuine = sealed(&vault, "acme", "k").await;
    let ciphertext = genuine.payload().clone();
    let placed = |topic: &str, key: &str, bytes: &[u8]| {
        Event::new(topic, key, Vec::new()).unwrap().sealed(bytes.to_vec().into()).unwrap()
    };
    let mut altered = ciphertext.to_vec();
    *altered.last_mut().unwrap() ^= 1;
    let other_tenant = String::from_utf8_lossy(&ciphertext[3..7]).replace("acme", "acmf");
    let mut readdressed = ciphertext.to_vec();
    readdressed[3..7].copy_from_slice(other_tenant.as_bytes());
    for bad in [
        placed("orders", "other", &ciphertext),
        placed("refunds", "k", &ciphertext),
        placed("orders", "k", &altered),
        placed("orders", "k", &readdressed),
        placed("orders", "k", &ciphertext[..20]),
        placed("orders", "k", b"no ciphertext at all"),
        placed("orders", "k", b""),
    ] {
        vault.emit(bad).await;
    }
    vault.emit(genuine).await;
    let options = RelayOptions { on_failure: OnFailure::Block, ..RelayOptions::default() };
    let relay = relay_that(&vault, &arrivals, opener(&vault).await, options).await;
    let parked = until_parked(&vault.outbox().await, 7).await;
    arrivals.until(1).await;
    relay.stop().await.unwrap();
    assert_eq!((parked.len(), arrivals.keys()), (7, vec!["k".to_owned()]), "the key goes on");
    assert_eq!(
        parked[0].reason,
        "the ciphertext was altered, moved to another place, or made with another key"
    );
    assert!(parked.iter().all(|parked| parked.attempts == 0 && !parked.holds_key), "{parked:?}");
}

async fn events_of_an_erased_tenant_are_parked_and_told_and_others_go_on<V: Vault>() {
    let (vault, arrivals) = (V::create().await, Arrivals::default());
    for tenant in ["acme", "umbrella"] {
        vault.emit(sealed(&vault, tenant, "shared").await).await;
        vault.emit(sealed(&vault, tenant, tenant).await).await;
    }
    vault.erase("acme").await;
    let relay = relay(&vault, &arrivals, opener(&vault).await).await;
    let parked = until_parked(&vault.outbox().await, 2).await;
    arrivals.until(2).await;
    let status = relay.status();
    relay.stop().await.unwrap();
    assert_eq!(arrivals.keys(), ["shared", "umbrella"]);
    for parked in &parked {
        assert_eq!(parked.reason, "it is encrypted, and the keys of its tenant acme were erased");
    }
    assert_eq!((parked.len(), status.refused, status.missed), (2, 0, 0));
}

async fn without_the_key_nothing_is_sent_and_no_attempt_is_spent<V: Vault>() {
    let (vault, arrivals) = (V::create().await, Arrivals::default());
    vault.emit(sealed(&vault, "acme", "k").await).await;
    let keyless = relay(&vault, &arrivals, None).await;
    while keyless.status().outages < 3 {
        sleep(Duration::from_millis(5)).await;
    }
    let status = keyless.status();
    keyless.stop().await.unwrap();
    let trouble = status.trouble.unwrap();
    assert!(trouble.contains("encrypted, and this relay was given no master key"), "{trouble}");
    assert_eq!((status.sent, status.missed, status.refused, status.parked), (0, 0, 0, 0));
    assert!(arrivals.keys().is_empty() && parked(&vault.outbox().await).await.is_empty());
    let relay = relay(&vault, &arrivals, opener(&vault).await).await;
    arrivals.until(1).await;
    relay.stop().await.unwrap();
    assert_eq!(arrivals.keys(), ["k"]);
}

async fn parked_events_are_shown_in_the_clear_to_whoever_has_the_keys<V: Vault>() {
    let (vault, arrivals) = (V::create().await, Arrivals::default());
    arrivals.refused.lock().unwrap().insert("k".to_owned());
    vault.emit(sealed(&vault, "acme", "k").await).await;
    let relay = relay(&vault, &arrivals, opener(&vault).await).await;
    let outbox = vault.outbox().await;
    let parked_as_it_is = until_parked(&outbox, 1).await;
    relay.stop().await.unwrap();
    assert!(parked_as_it_is[0].event.is_sealed(), "it stays encrypted where it is");
    assert!(!vault.holds(SECRET).await);
    let shown = parked(&OpenedOutbox::new(outbox, opener(&vault).await.unwrap())).await;
    assert_eq!(shown[0].event.payload, SECRET);
}

async fn where_only_encrypted_events_are_sent_others_are_parked<V: Vault>() {
    let (vault, arrivals) = (V::create().await, Arrivals::default());
    vault.emit(event("k")).await;
    vault.emit(sealed(&vault, "acme", "k").await).await;
    let options = RelayOptions { encrypted_only: true, ..RelayOptions::default() };
    let relay = relay_that(&vault, &arrivals, opener(&vault).await, options).await;
    let parked = until_parked(&vault.outbox().await, 1).await;
    arrivals.until(1).await;
    relay.stop().await.unwrap();
    assert_eq!(parked[0].reason, "it is not encrypted, and only encrypted events are sent here");
    assert_eq!(arrivals.keys(), ["k"]);
}
