use std::time::Duration;

use hapax_engine::{Admission, Options};

use crate::world::{RETENTION, World, ask, outcome, pay, permit, replayed};

#[tokio::test(start_paused = true)]
async fn a_finished_operation_is_answered_from_memory() {
    let world = World::new();
    let (engine, wire) = world.process();
    pay(&engine, &ask("k"), "paid").await;
    wire.hold();
    let begun = engine.begin(&ask("k")).await.unwrap();
    assert_eq!(replayed(&begun), outcome("paid"));
    assert_eq!(engine.stats().replays_from_cache, 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_record_is_not_answered_from_memory() {
    let world = World::new();
    let (engine, _) = world.process();
    pay(&engine, &ask("k"), "paid").await;
    let first = world.record("k").await.unwrap();
    tokio::time::sleep(RETENTION).await;
    let again = permit(engine.begin(&ask("k")).await.unwrap());
    assert_eq!(again.record().created_at, first.created_at.plus(RETENTION));
    assert_eq!(engine.stats().executions, 2);
    again.give_back().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded_and_the_store_answers_for_the_rest() {
    let world = World::new();
    let (engine, _) =
        world.process_with(Options { cache_bytes_max: 64 << 10, ..Options::default() });
    for number in 0..1000 {
        pay(&engine, &ask(&format!("k{number}")), "paid").await;
    }
    for number in 0..1000 {
        let begun = engine.begin(&ask(&format!("k{number}"))).await.unwrap();
        assert!(matches!(begun, Admission::Replay(_)));
    }
    let stats = engine.stats();
    assert_eq!(stats.replays, 1000);
    assert!(
        stats.replays_from_cache <= (64 << 10) / 640,
        "{} records fit",
        stats.replays_from_cache
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_cache_every_answer_comes_from_the_store() {
    let world = World::new();
    let (engine, _) = world.process_with(Options { cache_bytes_max: 0, ..Options::default() });
    pay(&engine, &ask("k"), "paid").await;
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
    assert_eq!((engine.stats().replays, engine.stats().replays_from_cache), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_in_memory_is_forgotten_as_often_as_asked() {
    let world = World::new();
    let cache_cleared_every = Some(Duration::from_secs(30));
    let (engine, _) = world.process_with(Options { cache_cleared_every, ..Options::default() });
    pay(&engine, &ask("k"), "paid").await;
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
    assert_eq!(engine.stats().replays_from_cache, 1);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
    let stats = engine.stats();
    assert_eq!((stats.replays, stats.replays_from_cache), (2, 1), "the store was asked");
}
