//! What a duplicate hears while the first request is at work.

use std::time::Duration;

use hapax_tower::{InFlight, Protection};

use crate::world::{World, keyed};

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_told_to_come_back_when_the_lease_ends() {
    let world = World::new();
    let first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    let second = world.send(keyed("/slow"), "100").await;
    second.check(409, "key-in-flight");
    assert_eq!(second.header("retry-after"), Some("30"));
    tokio::time::advance(Duration::from_millis(1500)).await;
    let third = world.send(keyed("/slow"), "100").await;
    assert_eq!(third.header("retry-after"), Some("29"));
    world.service.go.add_permits(1);
    assert_eq!(first.await.unwrap().status, 201);
    assert!(world.send(keyed("/slow"), "100").await.is_replay());
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_request_is_refused_even_while_the_first_is_at_work() {
    let world = World::new();
    let first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    world.send(keyed("/slow"), "999").await.check(422, "key-reused");
    world.service.go.add_permits(1);
    assert_eq!(first.await.unwrap().body, "run 1 of 3 bytes");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_that_waits_is_woken_by_the_answer() {
    let wait = InFlight::Wait(Duration::from_secs(20));
    let world = World::with(Protection { in_flight: wait, ..Protection::default() });
    let first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    let second = world.start(keyed("/slow"), "100");
    tokio::time::advance(Duration::from_secs(3)).await;
    let began = tokio::time::Instant::now();
    world.service.go.add_permits(1);
    let second = second.await.unwrap();
    assert!(second.is_replay());
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(first.await.unwrap().body, second.body);
}

#[tokio::test(start_paused = true)]
async fn a_client_waits_as_long_as_it_prefers_and_never_beyond_the_bound() {
    let wait_max = Duration::from_secs(5);
    let world = World::with(Protection { wait_max, ..Protection::default() });
    let _first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    for (prefer, waited) in [("wait=2", 2), ("wait=60", 5)] {
        let began = tokio::time::Instant::now();
        let answer = world.send(keyed("/slow").header("prefer", prefer), "100").await;
        answer.check(409, "key-in-flight");
        assert_eq!(began.elapsed().as_secs(), waited);
    }
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_the_service_is_at_work() {
    let policy = hapax_core::Policy::new(
        Duration::from_secs(10),
        hapax_core::Policy::default().retention(),
        hapax_core::ResultPolicy::Terminal,
        hapax_core::Recovery::Resend,
    )
    .unwrap();
    let timeout = Duration::from_secs(9);
    let world = World::with(Protection { policy, timeout, ..Protection::default() });
    let first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.send(keyed("/slow"), "100").await.check(409, "key-in-flight");
    }
    world.service.go.add_permits(1);
    assert_eq!(first.await.unwrap().status, 201);
    assert_eq!(world.runs(), 1);
}
