use hapax_core::Recovery;
use hapax_engine::{Admission, BeginError, Options};
use tokio::{task::JoinSet, time::Instant};

use crate::world::{World, ask, ask_with, paid, pay, permit, replayed, settle_down};
#[tokio::test(start_paused = true)]
async fn a_lone_request_goes_straight_through() {
    let world = World::new();
    let (engine, _) = world.process();
    let before = Instant::now();
    pay(&engine, &ask("k"), "paid").await;
    assert_eq!(before.elapsed().as_nanos(), 0, "nothing waited for company");
}

#[tokio::test(start_paused = true)]
async fn what_arrives_during_a_commit_goes_out_together() {
    let world = World::new();
    let (engine, wire) = world.process();
    settle_down().await;
    wire.hold();
    let mut callers = JoinSet::new();
    for number in 0..100 {
        let engine = engine.clone();
        callers.spawn(async move { engine.begin(&ask(&format!("k{number}"))).await });
        settle_down().await;
    }
    assert_eq!((wire.commits(), wire.claims()), (1, 1), "the first is on its way alone");
    wire.let_go();
    let begun = callers.join_all().await;
    assert!(begun.iter().all(|begun| matches!(begun, Ok(Admission::Execute(_)))));
    assert_eq!((wire.commits(), wire.claims()), (2, 100));
    let stats = engine.stats();
    assert_eq!((stats.batches, stats.batched_writes, stats.executions), (2, 100, 100));
    let spreads = engine.spreads();
    assert_eq!((spreads.batch_writes.count(), spreads.batch_writes.sum), (2, 100));
    assert_eq!(spreads.batch_writes.counts[0], 1, "the first was a batch of one");
    assert_eq!(spreads.commit_micros.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_time_a_commit_takes_is_counted() {
    let world = World::new();
    let (engine, wire) = world.process();
    settle_down().await;
    wire.hold();
    let caller = tokio::spawn({
        let engine = engine.clone();
        async move { engine.begin(&ask("k")).await }
    });
    settle_down().await;
    tokio::time::advance(std::time::Duration::from_millis(40)).await;
    wire.let_go();
    assert!(matches!(caller.await.unwrap(), Ok(Admission::Execute(_))));
    assert_eq!(engine.spreads().commit_micros.sum, 40_000);
}

#[tokio::test(start_paused = true)]
async fn duplicates_in_one_process_ask_the_store_once() {
    let world = World::new();
    let (engine, wire) = world.process();
    settle_down().await;
    wire.hold();
    let mut callers = JoinSet::new();
    for _ in 0..200 {
        let engine = engine.clone();
        callers.spawn(async move { engine.begin(&ask("k")).await.unwrap() });
    }
    settle_down().await;
    wire.let_go();
    let begun = callers.join_all().await;
    let executing = begun.iter().filter(|begun| matches!(begun, Admission::Execute(_))).count();
    let busy = begun.iter().filter(|begun| matches!(begun, Admission::Busy { .. })).count();
    assert_eq!((executing, busy, wire.claims()), (1, 199, 1));
}

#[tokio::test(start_paused = true)]
async fn another_request_under_a_key_that_runs_here_is_refused_without_the_store() {
    let world = World::new();
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    let other = engine.begin(&ask_with("k", Recovery::Hold, b"pay 999")).await.unwrap();
    let Admission::Mismatch(difference) = other else {
        panic!("expected a mismatch, got {other:?}")
    };
    assert_eq!(difference.parts().collect::<Vec<_>>(), [hapax_core::Part::Body]);
    assert_eq!(wire.claims(), 1);
    running.settle(paid("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn duplicates_of_a_finished_operation_are_answered_by_one_read() {
    let world = World::new();
    pay(&world.process().0, &ask("k"), "paid").await;
    let (engine, wire) = world.process_with(Options { cache_bytes_max: 0, ..Options::default() });
    settle_down().await;
    wire.hold();
    let mut callers = JoinSet::new();
    for _ in 0..50 {
        let engine = engine.clone();
        callers.spawn(async move { engine.begin(&ask("k")).await.unwrap() });
    }
    settle_down().await;
    wire.let_go();
    for begun in callers.join_all().await {
        assert_eq!(replayed(&begun), crate::world::outcome("paid"));
    }
    assert_eq!(wire.claims(), 1);
}

#[tokio::test(start_paused = true)]
async fn too_many_waiting_claims_are_refused_not_queued() {
    let world = World::new();
    let (engine, wire) = world.process_with(Options { queued_claims_max: 3, ..Options::default() });
    settle_down().await;
    wire.hold();
    let mut callers = JoinSet::new();
    for number in 0..10 {
        let engine = engine.clone();
        callers.spawn(async move { engine.begin(&ask(&format!("k{number}"))).await });
        settle_down().await;
    }
    wire.let_go();
    let begun = callers.join_all().await;
    let refused = begun.iter().filter(|begun| matches!(begun, Err(BeginError::Overloaded))).count();
    assert_eq!(refused, 10 - 1 - 3, "one on its way, three waiting");
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_claim_and_a_settle_of_one_operation_never_share_a_batch() {
    let world = World::new();
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&ask_with("k", Recovery::Resend, b"r")).await.unwrap());
    wire.hold();
    tokio::time::advance(crate::world::LEASE * 2).await;
    let blocked = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.begin(&ask("other")).await })
    };
    settle_down().await;
    let settling = tokio::spawn(running.settle(paid("paid")));
    let asking = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.begin(&ask_with("k", Recovery::Resend, b"r")).await })
    };
    settle_down().await;
    wire.let_go();
    blocked.await.unwrap().unwrap();
    settling.await.unwrap().unwrap();
    let begun = asking.await.unwrap().unwrap();
    assert_eq!(replayed(&begun), crate::world::outcome("paid"));
}
