//! Versions of a key: older ones are passed over, and gaps are waited for.

use std::time::Duration;

use hapax_messaging::consumer::{GapPolicy, GivenUp, Guard, Incoming, Naming, Options};

use super::{
    base::Base,
    on_every_base,
    queue::Queue,
    scene::{consume, dead, effects, hurried, incoming, kept, record},
};

on_every_base! {
    what_is_older_than_the_newest_is_passed_over,
    versions_that_come_in_any_order_are_acted_on_in_theirs,
    a_gap_that_does_not_close_makes_dead_letters_and_the_key_goes_on,
    a_gap_that_does_not_close_is_skipped_where_that_is_wanted,
    no_more_are_held_than_may_be,
    a_message_without_a_version_is_a_dead_letter,
}

/// The version is what the payload says.
fn versioned() -> Naming {
    Naming::default().version(|incoming| std::str::from_utf8(&incoming.payload).ok()?.parse().ok())
}

fn push(queue: &Queue, versions: &[i64]) {
    for version in versions {
        let key = Some("k".to_owned());
        queue.push(Incoming { key, ..incoming(&format!("m-{version}"), &version.to_string()) });
    }
}

fn every_one(held_max: u32, gap: GapPolicy) -> Options {
    let guard = Some(Guard::EveryOne { first: 1, held_max });
    Options { guard, gap, concurrency: 1, ..hurried() }
}

const PATIENT: GapPolicy =
    GapPolicy { patience: Duration::from_secs(600), then: GivenUp::DeadLetter };

async fn what_is_older_than_the_newest_is_passed_over<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    push(&queue, &[2, 1, 5, 5, 3, 6]);
    let options = Options { guard: Some(Guard::Newest), concurrency: 1, ..hurried() };
    consume(&base, &queue, options, versioned(), record::<B>).await.unwrap();
    assert_eq!(effects(&base).await, ["m-2", "m-5", "m-6"]);
    let states = ["m-1 passed", "m-2 done", "m-3 passed", "m-5 done", "m-6 done"];
    assert_eq!(kept(&base).await, states);
}

async fn versions_that_come_in_any_order_are_acted_on_in_theirs<B: Base>() {
    let base = B::create().await;
    let queue = Queue::deaf(1);
    push(&queue, &[3, 5, 2, 4, 1, 6]);
    consume(&base, &queue, every_one(100, PATIENT), versioned(), record::<B>).await.unwrap();
    assert_eq!(effects(&base).await, ["m-1", "m-2", "m-3", "m-4", "m-5", "m-6"]);
    assert!(kept(&base).await.iter().all(|state| state.ends_with(" done")));
}

/// Consumes what there is, then waits until nothing is held any more.
async fn until_nothing_is_held<B: Base>(base: &B, queue: &Queue, options: Options) {
    consume(base, queue, options.clone(), versioned(), record::<B>).await.unwrap();
    let held = format!("SELECT message_id FROM {}", B::named("inbox_held"));
    while !base.texts(&held).await.is_empty() {
        consume(base, queue, options.clone(), versioned(), record::<B>).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn a_gap_that_does_not_close_makes_dead_letters_and_the_key_goes_on<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    let gap = GapPolicy { patience: Duration::ZERO, then: GivenUp::DeadLetter };
    push(&queue, &[1, 3]);
    let mut options = every_one(100, gap);
    until_nothing_is_held(&base, &queue, options.clone()).await;
    assert_eq!(dead(&base).await, ["m-3 gap"]);
    options.gap = PATIENT;
    push(&queue, &[2, 4]);
    consume(&base, &queue, options, versioned(), record::<B>).await.unwrap();
    assert_eq!(effects(&base).await, ["m-1", "m-4"]);
    assert_eq!(kept(&base).await, ["m-1 done", "m-2 passed", "m-3 failed", "m-4 done"]);
}

async fn a_gap_that_does_not_close_is_skipped_where_that_is_wanted<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    let gap = GapPolicy { patience: Duration::ZERO, then: GivenUp::ActOn };
    push(&queue, &[1, 3, 4]);
    until_nothing_is_held(&base, &queue, every_one(100, gap)).await;
    assert_eq!(effects(&base).await, ["m-1", "m-3", "m-4"]);
    assert!(dead(&base).await.is_empty());
}

async fn no_more_are_held_than_may_be<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    push(&queue, &[3, 4, 5, 6]);
    let gap = GapPolicy { then: GivenUp::ActOn, ..PATIENT };
    consume(&base, &queue, every_one(2, gap), versioned(), record::<B>).await.unwrap();
    assert_eq!(effects(&base).await, ["m-3", "m-4", "m-5", "m-6"]);
}

async fn a_message_without_a_version_is_a_dead_letter<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    queue.push(incoming("m-1", "not a number"));
    consume(&base, &queue, every_one(2, PATIENT), versioned(), record::<B>).await.unwrap();
    assert_eq!(dead(&base).await, ["m-1 no-version"]);
}
