//! What becomes of events that are not taken, and of destinations that take nothing.

use std::time::Duration;

use hapax_core::outbox::{OutboxAdmin as _, OutboxLog as _, Selection};
use hapax_messaging::relay::{OnFailure, RelayOptions};
use tokio::time::sleep;

use super::{
    place::Place,
    scene::{NAME, emit, impatient, lag, outbox, parked, relay, until_parked},
};

#[tokio::test(start_paused = true)]
async fn an_outage_spends_no_attempt_and_ends_by_itself() {
    let (outbox, place) = (outbox(), Place::new());
    place.set_down(true);
    emit(&outbox, &[("a", "1"), ("b", "2"), ("a", "3")]);
    let running = relay(&outbox, &place, impatient(OnFailure::ParkTail));
    sleep(Duration::from_secs(60)).await;
    let status = running.status();
    assert!(status.outages > 5, "{status:?}");
    assert!(status.trouble.unwrap().contains("connection refused"));
    assert_eq!((status.parked, place.attempts()), (0, 0));

    place.set_down(false);
    place.until_taken(3).await;
    assert_eq!(place.attempts(), 3);
    assert_eq!(running.status().trouble, None);
    running.stop().await.unwrap();
    place.assert_in_order();
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_is_down_is_asked_less_and_less() {
    let (outbox, place) = (outbox(), Place::new());
    place.set_down(true);
    emit(&outbox, &[("a", "1")]);
    let running = relay(&outbox, &place, RelayOptions::default());
    sleep(Duration::from_secs(600)).await;
    let calls = place.calls();
    assert!((40..=120).contains(&calls), "{calls} calls in ten minutes");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missed_event_is_tried_again_and_holds_up_its_key_alone() {
    let (outbox, place) = (outbox(), Place::new());
    place.miss("1", 2);
    emit(&outbox, &[("a", "1"), ("a", "2"), ("b", "3"), ("b", "4")]);
    let running = relay(&outbox, &place, impatient(OnFailure::ParkTail));
    place.until_taken(4).await;
    running.stop().await.unwrap();
    place.assert_in_order();
    place.assert_no_duplicate();
    assert_eq!(parked(&outbox).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_is_parked_alone_and_the_rest_of_its_key_goes_on() {
    let (outbox, place) = (outbox(), Place::new());
    place.refuse("2");
    emit(&outbox, &[("a", "1"), ("a", "2"), ("a", "3"), ("a", "4")]);
    let running = relay(&outbox, &place, impatient(OnFailure::ParkMessage));
    place.until_taken(3).await;
    until_parked(&outbox, 1).await;
    assert_eq!(place.payloads(), ["1", "3", "4"]);
    assert_eq!(parked(&outbox).await, ["2"]);

    place.accept("2");
    assert_eq!(outbox.replay(NAME, Selection::All).await.unwrap(), 1);
    place.until_taken(4).await;
    running.stop().await.unwrap();
    assert_eq!(parked(&outbox).await, [""; 0]);
    assert_eq!(lag(&outbox).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_parked_tail_is_replayed_in_order_before_what_came_later() {
    let (outbox, place) = (outbox(), Place::new());
    place.refuse("2");
    emit(&outbox, &[("a", "1"), ("a", "2"), ("a", "3"), ("b", "x")]);
    let running = relay(&outbox, &place, impatient(OnFailure::ParkTail));
    until_parked(&outbox, 2).await;
    emit(&outbox, &[("a", "4"), ("b", "y")]);
    until_parked(&outbox, 3).await;
    place.until_taken(3).await;
    assert_eq!(parked(&outbox).await, ["2", "3", "4"]);

    place.accept("2");
    assert_eq!(outbox.replay(NAME, Selection::All).await.unwrap(), 3);
    emit(&outbox, &[("a", "5")]);
    place.until_taken(7).await;
    running.stop().await.unwrap();
    place.assert_in_order();
    place.assert_no_duplicate();
    assert_eq!(parked(&outbox).await, [""; 0]);
    assert_eq!(lag(&outbox).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_replay_that_is_refused_again_is_parked_again() {
    let (outbox, place) = (outbox(), Place::new());
    place.refuse("1");
    emit(&outbox, &[("a", "1"), ("a", "2")]);
    let running = relay(&outbox, &place, impatient(OnFailure::ParkTail));
    until_parked(&outbox, 2).await;
    let tried = place.attempts();
    outbox.replay(NAME, Selection::All).await.unwrap();
    place.until(|place| place.attempts() == tried + 2).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(parked(&outbox).await, ["1", "2"]);
    assert_eq!(place.attempts(), tried + 2);
    assert_eq!(place.payloads(), [""; 0]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_blocked_key_waits_for_ever_and_others_go_on() {
    let (outbox, place) = (outbox(), Place::new());
    place.refuse("1");
    emit(&outbox, &[("a", "1"), ("a", "2"), ("b", "3")]);
    let running = relay(&outbox, &place, impatient(OnFailure::Block));
    place.until_taken(1).await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(place.payloads(), ["3"]);
    assert_eq!(parked(&outbox).await, [""; 0]);
    place.accept("1");
    place.until_taken(3).await;
    running.stop().await.unwrap();
    place.assert_in_order();
    place.assert_no_duplicate();
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_is_an_outage() {
    let (outbox, place) = (outbox(), Place::new());
    place.panic_next(2);
    emit(&outbox, &[("a", "1")]);
    let running = relay(&outbox, &place, impatient(OnFailure::ParkTail));
    place.until_taken(1).await;
    assert_eq!((running.status().outages, running.status().parked), (2, 0));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_wants_no_more_is_paused_until_somebody_resumes_it() {
    let (outbox, place) = (outbox(), Place::new());
    place.set_gone(true);
    emit(&outbox, &[("a", "1")]);
    let running = relay(&outbox, &place, impatient(OnFailure::ParkTail));
    sleep(Duration::from_secs(60)).await;
    assert_eq!((place.calls(), running.status().paused), (1, true));
    assert!(outbox.destinations().await.unwrap()[0].paused);

    place.set_gone(false);
    outbox.set_paused(NAME, false).await.unwrap();
    place.until_taken(1).await;
    assert_eq!((running.status().paused, running.status().trouble), (false, None));
    running.stop().await.unwrap();
}
