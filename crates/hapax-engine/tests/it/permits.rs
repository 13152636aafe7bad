use std::time::Duration;

use hapax_core::{AnswerMeaning, Doubt, Fence, Recovery, State, StateTag};
use hapax_engine::{Admission, BeginError, Settled};

use crate::world::{
    LEASE, World, answered, ask, ask_with, outcome, paid, permit, replayed, settle_down,
};

#[tokio::test(start_paused = true)]
async fn a_settled_outcome_is_stored_before_settle_returns() {
    let world = World::new();
    let (engine, _) = world.process();
    let settled = permit(engine.begin(&ask("k")).await.unwrap()).settle(paid("paid")).await;
    let Ok(Settled::Done(record)) = settled else { panic!("{settled:?}") };
    assert_eq!(world.record("k").await.as_ref(), Some(&*record));
    assert_eq!(record.outcome(), Some(&outcome("paid")));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_for_as_long_as_the_work_takes() {
    let world = World::new();
    let (engine, _) = world.process();
    let (elsewhere, _) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    for _ in 0..20 {
        tokio::time::sleep(LEASE / 2).await;
        let begun = elsewhere.begin(&ask("k")).await.unwrap();
        assert!(matches!(begun, Admission::Busy { .. }), "{begun:?}");
        assert!(running.lease_left() > LEASE / 3);
    }
    assert!(engine.stats().renewals >= 20);
    assert_eq!(running.attempt().fence, Fence::FIRST);
    running.settle(paid("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stale_owner_is_told_what_the_new_one_stored() {
    let world = World::new();
    let (engine, wire) = world.process();
    let (elsewhere, _) = world.process();
    let request = ask_with("k", Recovery::Resend, b"r");
    let stale = permit(engine.begin(&request).await.unwrap());
    wire.hold();
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(stale.lease_left(), Duration::ZERO);
    let follower = elsewhere.begin(&request).await.unwrap();
    permit(follower).settle(paid("by the new owner")).await.unwrap();
    wire.let_go();
    let Ok(Settled::Superseded(Some(record))) = stale.settle(paid("by the stale owner")).await
    else {
        panic!("a stale owner must not be believed");
    };
    assert_eq!(record.outcome(), Some(&outcome("by the new owner")));
    assert_eq!(replayed(&engine.begin(&request).await.unwrap()), outcome("by the new owner"));
    assert_eq!(engine.stats().settles_lost, 1);
}

#[tokio::test(start_paused = true)]
async fn a_permit_dropped_by_a_panic_leaves_a_doubt_not_a_stuck_key() {
    let world = World::new();
    let (engine, _) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    let panicked = tokio::spawn(async move {
        let _running = running;
        panic!("the handler dies");
    });
    assert!(panicked.await.is_err());
    settle_down().await;
    let record = world.record("k").await.unwrap();
    assert!(matches!(record.state, State::InDoubt { doubt: Doubt::Interrupted, .. }));
    let begun = engine.begin(&ask("k")).await.unwrap();
    assert!(matches!(begun, Admission::InDoubt { doubt: Doubt::Interrupted }));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_before_it_hears_gives_the_key_back() {
    let world = World::new();
    let (engine, wire) = world.process();
    wire.hold();
    let caller = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.begin(&ask("k")).await })
    };
    settle_down().await;
    caller.abort();
    settle_down().await;
    wire.let_go();
    settle_down().await;
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::Released);
    let next = permit(engine.begin(&ask("k")).await.unwrap());
    assert_eq!(next.attempt().fence.get(), 2);
    next.give_back().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_while_settling_does_not_lose_the_outcome() {
    let world = World::new();
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    wire.hold();
    let settling = tokio::spawn(running.settle(paid("paid")));
    settle_down().await;
    settling.abort();
    settle_down().await;
    wire.let_go();
    settle_down().await;
    assert_eq!(world.record("k").await.unwrap().outcome(), Some(&outcome("paid")));
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
}

#[tokio::test(start_paused = true)]
async fn a_server_error_frees_the_key_and_the_fence_grows() {
    let world = World::new();
    let (engine, _) = world.process();
    for attempt in 1..=3 {
        let running = permit(engine.begin(&ask("k")).await.unwrap());
        assert_eq!(running.attempt().fence.get(), attempt);
        running.settle(answered(AnswerMeaning::TakenForNotDone)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn shutting_down_waits_for_what_runs_and_begins_nothing_new() {
    let world = World::new();
    let (engine, _) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    let stopping = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.shut_down(LEASE).await })
    };
    settle_down().await;
    assert!(matches!(engine.begin(&ask("other")).await, Err(BeginError::Stopped)));
    assert!(!stopping.is_finished());
    running.settle(paid("paid")).await.unwrap();
    assert!(stopping.await.unwrap(), "everything settled in time");
    assert_eq!(world.record("k").await.unwrap().outcome(), Some(&outcome("paid")));
}

#[tokio::test(start_paused = true)]
async fn shutting_down_says_when_something_did_not_settle_in_time() {
    let world = World::new();
    let (engine, _) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    assert!(!engine.shut_down(Duration::from_secs(1)).await);
    running.give_back().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_permit_outlives_the_last_handle_of_its_engine() {
    let world = World::new();
    let (engine, _) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    drop(engine);
    tokio::time::sleep(LEASE * 3).await;
    running.settle(paid("paid")).await.unwrap();
    assert_eq!(world.record("k").await.unwrap().outcome(), Some(&outcome("paid")));
}
