//! An outbox in memory, under tokio's clock.

use std::time::Duration;

use hapax_core::{
    Event, Timestamp,
    outbox::{Destination, OutboxAdmin as _, ParkedPage, Selection, Topics, memory::Outbox},
    retry::{Backoff, Jitter, Schedule},
};
use hapax_messaging::relay::{OnFailure, Relay, RelayOptions, Running};
use tokio::time::Instant;

use super::place::Place;

pub(crate) const NAME: &str = "place";

/// An empty outbox whose clock is tokio's, so that tests can move it.
pub(crate) fn outbox() -> Outbox {
    let begun = Instant::now();
    Outbox::new(move || {
        Timestamp::from_micros(1_000_000_000).plus(Instant::now().duration_since(begun))
    })
}

pub(crate) fn destination() -> Destination {
    Destination::new(NAME, Topics::all()).unwrap()
}

pub(crate) fn relay(outbox: &Outbox, place: &Place, options: RelayOptions) -> Running {
    Relay::new(outbox.clone(), destination(), place.clone()).options(options).spawn()
}

/// Three attempts, or two refusals.
pub(crate) fn impatient(on_failure: OnFailure) -> RelayOptions {
    let (base, cap) = (Duration::from_millis(10), Duration::from_millis(50));
    let backoff = Backoff { jitter: Jitter::Equal, base, cap };
    let schedule = Schedule::new(backoff, 3).unwrap();
    RelayOptions { on_failure, schedule, refusals_max: 2, ..RelayOptions::default() }
}

/// Emits payloads under keys, each of its own transaction.
pub(crate) fn emit(outbox: &Outbox, events: &[(&str, &str)]) {
    for (key, payload) in events {
        outbox.emit(&[Event::new("orders", *key, (*payload).to_owned()).unwrap()]);
    }
}

pub(crate) async fn parked(outbox: &Outbox) -> Vec<String> {
    let page = ParkedPage { after: 0, limit: 1000 };
    let parked = outbox.parked(NAME, Selection::All, page).await.unwrap();
    parked.iter().map(|parked| String::from_utf8(parked.event.payload.to_vec()).unwrap()).collect()
}

/// Waits until so many are parked.
pub(crate) async fn until_parked(outbox: &Outbox, events: usize) {
    while parked(outbox).await.len() < events {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn lag(outbox: &Outbox) -> u64 {
    outbox.lag(NAME).await.unwrap().unwrap().events()
}
