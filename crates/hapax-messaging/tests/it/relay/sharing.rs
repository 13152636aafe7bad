//! Several relays on one destination.

use std::time::Duration;

use hapax_core::outbox::OutboxAdmin as _;
use hapax_messaging::relay::{Relay, RelayOptions};
use tokio::{sync::watch, time::sleep};

use super::{
    place::Place,
    scene::{NAME, destination, emit, lag, outbox, relay},
};

#[tokio::test(start_paused = true)]
async fn relays_share_the_lanes_and_hand_them_over_without_a_duplicate() {
    let (outbox, place) = (outbox(), Place::new());
    place.take_so_long(Duration::from_millis(20));
    let first = relay(&outbox, &place, RelayOptions::default());
    let mut emitted = 0;
    let mut others = Vec::new();
    for round in 0..60 {
        for key in 0..20 {
            emit(&outbox, &[(&format!("k{key}"), &format!("{round}"))]);
            emitted += 1;
        }
        if round == 20 || round == 30 {
            others.push(relay(&outbox, &place, RelayOptions::default()));
        }
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(outbox.lag(NAME).await.unwrap().unwrap().relays, 3);
    for running in others.iter().chain([&first]) {
        let lanes = running.status().lanes;
        assert!((20..=23).contains(&lanes), "{lanes} of 64 lanes for one of three");
    }
    place.until_taken(emitted).await;
    for running in others.into_iter().chain([first]) {
        running.stop().await.unwrap();
    }
    place.assert_in_order();
    place.assert_no_duplicate();
    assert_eq!(lag(&outbox).await, 0);
}

#[tokio::test(start_paused = true)]
async fn when_a_relay_dies_another_goes_on_where_it_was() {
    let (outbox, place) = (outbox(), Place::new());
    let (_stop, stopped) = watch::channel(false);
    let dying = Relay::new(outbox.clone(), destination(), place.clone());
    let dying = tokio::spawn(dying.run(stopped));
    emit(&outbox, &[("a", "1"), ("b", "2")]);
    place.until_taken(2).await;
    place.take_so_long(Duration::from_millis(10));
    emit(&outbox, &[("a", "3"), ("b", "4"), ("a", "5")]);
    sleep(Duration::from_millis(12)).await;
    dying.abort();

    let running = relay(&outbox, &place, RelayOptions::default());
    while lag(&outbox).await > 0 {
        sleep(Duration::from_millis(100)).await;
    }
    running.stop().await.unwrap();
    assert_eq!(place.distinct(), 5);
    place.assert_in_order();
}
