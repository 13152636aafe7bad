//! What is sent, and in which order.

use std::time::Duration;

use hapax_core::{
    Event,
    outbox::{Destination, Start, Topics},
};
use hapax_messaging::relay::{Relay, RelayOptions};
use tokio::time::{Instant, sleep};

use super::{
    place::Place,
    scene::{destination, emit, lag, outbox, relay},
};

#[tokio::test(start_paused = true)]
async fn everything_arrives_once_and_each_key_in_order() {
    let (outbox, place) = (outbox(), Place::new());
    for round in 0..500 {
        let keys: Vec<(String, String)> =
            (0..7).map(|key| (format!("k{key}"), format!("{round}"))).collect();
        let events: Vec<(&str, &str)> =
            keys.iter().map(|(key, payload)| (key.as_str(), payload.as_str())).collect();
        emit(&outbox, &events);
    }
    let running = relay(&outbox, &place, RelayOptions::default());
    place.until_taken(3500).await;
    running.stop().await.unwrap();
    place.assert_in_order();
    place.assert_no_duplicate();
    assert_eq!(lag(&outbox).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_ring_is_answered_long_before_the_next_poll() {
    let (outbox, place) = (outbox(), Place::new());
    let running = relay(&outbox, &place, RelayOptions::default());
    sleep(Duration::from_secs(30)).await;
    let begun = Instant::now();
    emit(&outbox, &[("k", "now")]);
    place.until_taken(1).await;
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_relay_asks_at_most_twice_a_second() {
    let (outbox, place) = (outbox(), Place::new());
    let running = relay(&outbox, &place, RelayOptions::default());
    sleep(Duration::from_secs(10)).await;
    let before = running.status().looks;
    sleep(Duration::from_secs(60)).await;
    let looks = running.status().looks - before;
    assert!(looks <= 61, "{looks} reads in a minute");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_wanted_topics_are_sent() {
    let (outbox, place) = (outbox(), Place::new());
    for topic in ["orders.paid", "mail", "orders.sent"] {
        outbox.emit(&[Event::new(topic, "k", topic).unwrap()]);
    }
    let destination = Destination::new("d", Topics::parse(["orders.*"]).unwrap()).unwrap();
    let running = Relay::new(outbox.clone(), destination, place.clone()).spawn();
    place.until_taken(2).await;
    sleep(Duration::from_secs(5)).await;
    running.stop().await.unwrap();
    let mut payloads = place.payloads();
    payloads.sort();
    assert_eq!(payloads, ["orders.paid", "orders.sent"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_destination_may_begin_with_what_comes_next() {
    let (outbox, place) = (outbox(), Place::new());
    emit(&outbox, &[("k", "old")]);
    let running =
        Relay::new(outbox.clone(), destination(), place.clone()).start(Start::Now).spawn();
    while running.status().looks == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    emit(&outbox, &[("k", "new")]);
    place.until_taken(1).await;
    running.stop().await.unwrap();
    assert_eq!(place.payloads(), ["new"]);
}
