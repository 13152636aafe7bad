//! What a duplicate hears while the first request is at work.

use std::time::Duration;

use hapax_tower::{InFlight, Protection};

use tokio::time::Instant;

use crate::world::{World, keyed, post};

/// What a duplicate hears after each of these times of work that is begun now, in milliseconds.
async fn retry_after(world: &World, key: &str, times: &[u64]) -> Vec<String> {
    let request = || post("/slow").header("idempotency-key", key.to_owned());
    let (runs, began) = (world.runs(), Instant::now());
    let first = world.start(request(), "100");
    world.begun(runs + 1).await;
    let mut heard = Vec::new();
    for millis in times {
        tokio::time::sleep_until(began + Duration::from_millis(*millis)).await;
        let duplicate = world.send(request(), "100").await;
        duplicate.check(409, "key-in-flight");
        heard.push(duplicate.header("retry-after").unwrap().to_owned());
    }
    world.service.go.add_permits(1);
    assert_eq!(first.await.unwrap().status, 201);
    assert!(world.send(request(), "100").await.is_replay());
    heard
}

/// Work that takes so long.
async fn work(world: &World, key: &str, time: Duration) {
    let runs = world.runs();
    let working = world.start(post("/slow").header("idempotency-key", key.to_owned()), "100");
    world.begun(runs + 1).await;
    tokio::time::sleep(time).await;
    world.service.go.add_permits(1);
    assert_eq!(working.await.unwrap().status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_told_to_come_back_when_the_work_is_usually_done() {
    let world = World::new();
    for run in 0..3 {
        work(&world, &format!("half-{run}"), Duration::from_millis(500)).await;
    }
    assert_eq!(retry_after(&world, "k-1", &[0, 400]).await, ["1", "1"]);
    for run in 0..300 {
        work(&world, &format!("long-{run}"), Duration::from_secs(8)).await;
    }
    assert_eq!(retry_after(&world, "k-2", &[0, 3000, 7900]).await, ["9", "6", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_work_without_a_usual_time_asks_soon_and_then_more_seldom() {
    let world = World::new();
    let heard = retry_after(&world, "k-1", &[0, 1500, 6000, 20_000]).await;
    assert_eq!(heard, ["1", "1", "3", "10"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_to_wait_longer_than_the_lease() {
    let policy = hapax_core::Policy::new(
        Duration::from_secs(10),
        hapax_core::Policy::default().retention(),
        hapax_core::Recovery::Hold,
    )
    .unwrap();
    let timeout = Duration::from_millis(9900);
    let world = World::with(Protection { policy, timeout, ..Protection::default() });
    for run in 0..3 {
        work(&world, &format!("long-{run}"), Duration::from_millis(9500)).await;
    }
    let heard = retry_after(&world, "k-1", &[0]).await;
    assert_eq!(heard, ["10"]);
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
    let began = Instant::now();
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
        let began = Instant::now();
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
