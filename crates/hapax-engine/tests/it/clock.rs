//! A store's clock that is set, by seconds or by days, while engines run and between their lives.

use std::time::Duration;

use hapax_core::{
    Recovery, StateTag,
    limits::{CLOCK_LEASES_STAY, CLOCK_STAYS},
};
use hapax_engine::{Admission, Options};
use tokio::time::sleep;

use crate::world::{
    LEASE, RETENTION, World, ask, ask_with, outcome, paid, pay, permit, replayed, stored,
};

/// Some looks of the sweeper and of the purger.
const SOME_LOOKS: Duration = Duration::from_secs(40);
const DAYS: Duration = Duration::from_secs(2 * 24 * 60 * 60);

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumped_expires_nothing_until_it_has_stayed() {
    let world = World::new();
    let (engine, _) = world.process_with(Options { cache_bytes_max: 0, ..Options::default() });
    pay(&engine, &ask("k"), "paid").await;
    world.set_ahead(DAYS);
    for _ in 0..3 {
        assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
        sleep(SOME_LOOKS).await;
    }
    sleep(CLOCK_STAYS).await;
    pay(&engine, &ask("k"), "paid again").await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumped_does_not_end_what_is_answered_from_memory() {
    let world = World::new();
    let (engine, wire) = world.process();
    pay(&engine, &ask("k"), "paid").await;
    world.set_ahead(DAYS);
    sleep(SOME_LOOKS).await;
    let claims = wire.claims();
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
    assert_eq!(wire.claims(), claims, "the store was not asked");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_for_a_moment_purges_nothing_across_restarts() {
    let world = World::new();
    let (engine, _) = world.process();
    for key in ["a", "b", "c"] {
        pay(&engine, &ask(key), "paid").await;
    }
    world.set_ahead(DAYS);
    sleep(SOME_LOOKS).await;
    drop(engine);
    let (ahead, _) = world.process();
    assert_eq!(replayed(&ahead.begin(&ask("a")).await.unwrap()), outcome("paid"));
    sleep(SOME_LOOKS).await;
    drop(ahead);
    world.set_back(DAYS);
    let (right_again, _) = world.process();
    sleep(SOME_LOOKS).await;
    for key in ["a", "b", "c"] {
        assert_eq!(replayed(&right_again.begin(&ask(key)).await.unwrap()), outcome("paid"));
    }
    assert_eq!(right_again.stats().purged, 0);
}

#[tokio::test(start_paused = true)]
async fn purging_goes_on_once_a_jump_has_stayed() {
    let world = World::new();
    let (engine, _) = world.process();
    pay(&engine, &ask("k"), "paid").await;
    world.set_ahead(DAYS);
    sleep(CLOCK_STAYS - SOME_LOOKS).await;
    assert!(world.record("k").await.is_some());
    sleep(2 * SOME_LOOKS).await;
    assert!(world.record("k").await.is_none());
    assert_eq!(engine.stats().purged, 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_nobody_looked_at_for_days_keeps_everything_until_the_clock_has_stayed() {
    let world = World::new();
    let (engine, _) = world.process();
    pay(&engine, &ask("k"), "paid").await;
    drop(engine);
    sleep(DAYS).await;
    let (engine, _) = world.process();
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
    sleep(CLOCK_STAYS + SOME_LOOKS).await;
    assert!(world.record("k").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_short_restart_delays_nothing() {
    let world = World::new();
    let (engine, _) = world.process();
    pay(&engine, &ask("k"), "paid").await;
    sleep(RETENTION - SOME_LOOKS).await;
    drop(engine);
    sleep(2 * SOME_LOOKS).await;
    let (engine, _) = world.process();
    sleep(SOME_LOOKS).await;
    assert_eq!(engine.stats().purged, 1);
}

#[tokio::test(start_paused = true)]
async fn an_owner_at_work_is_not_followed_because_the_clock_jumped() {
    for recovery in [Recovery::Resend, Recovery::Probe, Recovery::Hold] {
        let world = World::new();
        let asked = stored(ask_with("k", recovery, b"pay 100"));
        let (engine, _) = world.process();
        let running = permit(engine.begin(&asked).await.unwrap());
        let (elsewhere, _) = world.process();
        sleep(SOME_LOOKS).await;
        world.set_ahead(DAYS);
        for _ in 0..20 {
            let begun = elsewhere.begin(&asked).await.unwrap();
            assert!(matches!(begun, Admission::Busy { .. }), "{recovery:?}: {begun:?}");
            sleep(LEASE / 6).await;
        }
        sleep(CLOCK_STAYS).await;
        running.settle(paid("paid")).await.unwrap();
        assert_eq!(replayed(&elsewhere.begin(&asked).await.unwrap()), outcome("paid"));
        let stats = elsewhere.stats();
        assert_eq!((stats.swept_in_doubt, stats.swept_taken_over, stats.swept_released), (0, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_at_work_counts_its_lease_anew_when_the_clock_was_ahead() {
    let world = World::new();
    let (engine, _) = world.process();
    world.set_ahead(DAYS);
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    let (elsewhere, _) = world.process();
    sleep(SOME_LOOKS).await;
    world.set_back(DAYS);
    sleep(CLOCK_LEASES_STAY + SOME_LOOKS).await;
    let begun = elsewhere.begin(&ask("k")).await.unwrap();
    assert!(
        matches!(begun, Admission::Busy { lease_left, .. } if lease_left <= LEASE),
        "{begun:?}"
    );
    running.settle(paid("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_owner_died_while_the_clock_was_ahead_does_not_stay_busy() {
    let world = World::new();
    world.set_ahead(DAYS);
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    wire.hold();
    std::mem::forget((running, engine));
    world.set_back(DAYS);
    let (engine, _) = world.process();
    let begun = engine.begin(&ask("k")).await.unwrap();
    assert!(matches!(begun, Admission::Busy { .. }), "its owner may be at work: {begun:?}");
    sleep(CLOCK_LEASES_STAY + SOME_LOOKS).await;
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::InDoubt);
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_while_the_clock_is_behind_is_kept_as_long_as_anything() {
    let world = World::new();
    let (engine, _) = world.process();
    sleep(SOME_LOOKS).await;
    world.set_back(DAYS);
    pay(&engine, &ask("k"), "paid").await;
    sleep(SOME_LOOKS).await;
    world.set_ahead(DAYS);
    sleep(RETENTION - 2 * SOME_LOOKS).await;
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
    assert!(world.record("k").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lease_given_by_a_clock_that_was_ahead_lasts_no_longer_than_any() {
    let world = World::new();
    world.set_ahead(DAYS);
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    world.set_back(DAYS);
    pay(&engine, &ask("another"), "paid").await;
    wire.hold();
    assert!(running.lease_left() <= LEASE);
    sleep(LEASE).await;
    assert!(running.lease_left().is_zero(), "{:?}", running.lease_left());
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_a_lease_of_another_time_waits_until_its_owner_can_send_no_more() {
    let world = World::new();
    let asked = ask_with("k", Recovery::Probe, b"pay 100");
    let (elsewhere, _) = world.process();
    sleep(2 * CLOCK_STAYS).await;
    world.set_ahead(DAYS);
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&asked).await.unwrap());
    wire.hold();
    let begun = elsewhere.begin(&asked).await.unwrap();
    assert!(matches!(begun, Admission::Busy { .. }), "both clocks are ahead: {begun:?}");
    world.set_back(DAYS);
    let Admission::TakenOver { permit, .. } = elsewhere.begin(&asked).await.unwrap() else {
        panic!("nobody ever renewed it by this clock");
    };
    assert!(permit.quiet_in() >= running.lease_left() + asked.policy.works_for());
    assert!(permit.quiet_in() >= LEASE + asked.policy.works_for());
}
