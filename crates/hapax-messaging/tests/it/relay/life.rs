//! How a relay begins, ends and is held up.

use std::time::Duration;

use hapax_core::outbox::{OutboxAdmin as _, OutboxLog as _, ReadLimits};
use hapax_messaging::relay::{RelayError, RelayOptions};
use tokio::time::sleep;

use super::{
    place::Place,
    scene::{NAME, emit, lag, outbox, relay},
};

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_waited_for_and_not_sent_again() {
    let (outbox, place) = (outbox(), Place::new());
    place.take_so_long(Duration::from_secs(3));
    emit(&outbox, &[("a", "1"), ("b", "2"), ("c", "3")]);
    let running = relay(&outbox, &place, RelayOptions::default());
    place.until(|place| place.calls() > 0).await;
    running.stop().await.unwrap();
    let taken = place.distinct();
    assert!(taken > 0);

    let running = relay(&outbox, &place, RelayOptions::default());
    place.until_taken(3).await;
    running.stop().await.unwrap();
    place.assert_no_duplicate();
    assert_eq!(lag(&outbox).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_never_answers_does_not_hold_up_the_end() {
    let (outbox, place) = (outbox(), Place::new());
    place.take_so_long(Duration::from_secs(1_000_000));
    emit(&outbox, &[("a", "1")]);
    let running = relay(&outbox, &place, RelayOptions::default());
    place.until(|place| place.calls() > 0).await;
    tokio::time::timeout(Duration::from_secs(60), running.stop()).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_more_is_read_than_there_is_room_for() {
    let (outbox, place) = (outbox(), Place::new());
    place.take_so_long(Duration::from_secs(1000));
    for at in 0..200 {
        emit(&outbox, &[(&format!("k{at}"), "x")]);
    }
    let window = ReadLimits { rows: 20, bytes: 1 << 20 };
    let options = RelayOptions { window, batch: 5, ..RelayOptions::default() };
    let running = relay(&outbox, &place, options);
    sleep(Duration::from_secs(30)).await;
    let waiting = running.status().waiting;
    assert!((1..=20).contains(&waiting), "{waiting}");
    place.take_so_long(Duration::ZERO);
    place.until_taken(200).await;
    running.stop().await.unwrap();
    place.assert_in_order();
}

#[tokio::test(start_paused = true)]
async fn a_paused_destination_is_sent_nothing_until_it_is_resumed() {
    let (outbox, place) = (outbox(), Place::new());
    let running = relay(&outbox, &place, RelayOptions::default());
    emit(&outbox, &[("a", "1")]);
    place.until_taken(1).await;
    assert!(outbox.set_paused(NAME, true).await.unwrap());
    sleep(Duration::from_secs(20)).await;
    emit(&outbox, &[("a", "2")]);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(place.payloads(), ["1"]);
    assert!(running.status().paused);
    outbox.set_paused(NAME, false).await.unwrap();
    place.until_taken(2).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_relay_whose_destination_was_removed_ends() {
    let (outbox, place) = (outbox(), Place::new());
    let running = relay(&outbox, &place, RelayOptions::default());
    emit(&outbox, &[("a", "1")]);
    place.until_taken(1).await;
    assert!(outbox.remove(NAME).await.unwrap());
    sleep(Duration::from_secs(30)).await;
    let ended = running.stop().await;
    assert!(matches!(ended, Err(RelayError::Removed { name }) if name == NAME));
}

#[tokio::test(start_paused = true)]
async fn options_out_of_bounds_are_refused_with_what_they_may_be() {
    let (outbox, place) = (outbox(), Place::new());
    let options = RelayOptions { pipes: 0, ..RelayOptions::default() };
    let refused = relay(&outbox, &place, options).stop().await.unwrap_err();
    assert_eq!(refused.to_string(), "pipes cannot be 0; give 1 to 64");
    assert_eq!(outbox.destinations().await.unwrap(), []);
}
