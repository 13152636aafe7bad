use std::time::Duration;

use hapax_core::Recovery;
use hapax_engine::{Admission, Options};
use tokio::{task::JoinSet, time::Instant};

use crate::world::{LEASE, World, ask, ask_with, outcome, paid, permit, replayed, settle_down};

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn waiters_in_the_same_process_wake_at_once() {
    let world = World::new();
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    let mut waiters = JoinSet::new();
    for _ in 0..50 {
        let engine = engine.clone();
        waiters.spawn(async move { engine.begin_waiting(&ask("k"), PATIENCE).await.unwrap() });
    }
    settle_down().await;
    let before = Instant::now();
    running.settle(paid("paid")).await.unwrap();
    for begun in waiters.join_all().await {
        assert_eq!(replayed(&begun), outcome("paid"));
    }
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(wire.claims(), 1);
}

#[tokio::test(start_paused = true)]
async fn waiters_in_another_process_find_out_within_a_bounded_time() {
    let world = World::new();
    let (engine, _) = world.process();
    let (elsewhere, wire) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    let mut waiters = JoinSet::new();
    for _ in 0..50 {
        let elsewhere = elsewhere.clone();
        waiters.spawn(async move { elsewhere.begin_waiting(&ask("k"), PATIENCE).await.unwrap() });
    }
    settle_down().await;
    let asked = wire.claims();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = Instant::now();
    running.settle(paid("paid")).await.unwrap();
    for begun in waiters.join_all().await {
        assert_eq!(replayed(&begun), outcome("paid"));
    }
    assert!(before.elapsed() <= Duration::from_secs(1), "{:?}", before.elapsed());
    let again = wire.claims() - asked;
    assert!(again <= 1, "woken, fifty waiters asked {again} times");
}

#[tokio::test(start_paused = true)]
async fn patience_ends() {
    let world = World::new();
    let (engine, _) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    for process in [engine.clone(), world.process().0] {
        let before = Instant::now();
        let begun = process.begin_waiting(&ask("k"), PATIENCE).await.unwrap();
        assert!(matches!(begun, Admission::Busy { lease_left, .. } if lease_left <= LEASE));
        assert_eq!(before.elapsed(), PATIENCE);
    }
    running.settle(paid("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_runs_it_when_the_first_gives_the_key_back() {
    let world = World::new();
    let (engine, _) = world.process();
    let first = permit(engine.begin(&ask("k")).await.unwrap());
    let waiter = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.begin_waiting(&ask("k"), PATIENCE).await.unwrap() })
    };
    settle_down().await;
    first.give_back().await.unwrap();
    let second = permit(waiter.await.unwrap());
    assert_eq!(second.attempt().fence.get(), 2);
    second.settle(paid("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_follows_an_owner_that_vanished_elsewhere() {
    let world = World::new();
    let (engine, wire) = world.process();
    let options = Options { sweep_every: LEASE * 10, ..Options::default() };
    let (elsewhere, _) = world.process_with(options);
    let request = ask_with("k", Recovery::Resend, b"r");
    let vanished = permit(engine.begin(&request).await.unwrap());
    wire.hold();
    let begun = elsewhere.begin_waiting(&request, LEASE * 2).await.unwrap();
    assert!(matches!(begun, Admission::TakenOver { recovery: Recovery::Resend, .. }), "{begun:?}");
    permit(begun).settle(paid("paid")).await.unwrap();
    drop(vanished);
}

#[tokio::test(start_paused = true)]
async fn too_many_waiters_are_told_it_is_busy() {
    let world = World::new();
    let (engine, _) = world.process_with(Options { waiters_max: 1, ..Options::default() });
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    let patient = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.begin_waiting(&ask("k"), PATIENCE).await.unwrap() })
    };
    settle_down().await;
    let before = Instant::now();
    let begun = engine.begin_waiting(&ask("k"), PATIENCE).await.unwrap();
    assert!(matches!(begun, Admission::Busy { .. }));
    assert_eq!(before.elapsed(), Duration::ZERO);
    running.settle(paid("paid")).await.unwrap();
    assert_eq!(replayed(&patient.await.unwrap()), outcome("paid"));
}
