use std::time::Duration;

use hapax_core::{Recovery, StateTag, StoreError};
use hapax_engine::{BeginError, Options, SettleError};

use crate::world::{
    Cut, LEASE, World, ask, ask_with, outcome, paid, pay, permit, replayed, settle_down,
};

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_means_nothing_runs() {
    let world = World::new();
    let (engine, wire) = world.process();
    wire.cut([Cut::Refused]);
    let begun = engine.begin(&ask("k")).await;
    assert!(matches!(begun, Err(BeginError::Store(StoreError::Unavailable(_)))), "{begun:?}");
    assert_eq!(world.record("k").await, None);
    pay(&engine, &ask("k"), "paid").await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_is_recognised_by_reading_again() {
    let world = World::new();
    let (engine, wire) = world.process();
    wire.cut([Cut::AnswerLost]);
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    assert_eq!(running.attempt().fence.get(), 1);
    running.settle(paid("paid")).await.unwrap();
    assert_eq!(engine.stats().unconfirmed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_never_arrived_is_made_again() {
    let world = World::new();
    let (engine, wire) = world.process();
    wire.cut([Cut::RequestLost]);
    pay(&engine, &ask("k"), "paid").await;
    assert_eq!(wire.claims(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_claim_nobody_can_confirm_is_given_back_when_the_store_returns() {
    let world = World::new();
    let (engine, wire) = world.process();
    wire.cut([Cut::AnswerLost]);
    wire.blind(true);
    let begun = engine.begin(&ask("k")).await;
    assert!(matches!(begun, Err(BeginError::Store(StoreError::Unconfirmed(_)))), "{begun:?}");
    wire.blind(false);
    settle_down().await;
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::Released);
    pay(&engine, &ask("k"), "paid").await;
}

#[tokio::test(start_paused = true)]
async fn a_settle_whose_answer_was_lost_is_read_again_not_repeated() {
    let world = World::new();
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    wire.cut([Cut::AnswerLost]);
    running.settle(paid("paid")).await.unwrap();
    assert_eq!(wire.commits(), 2);
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
}

#[tokio::test(start_paused = true)]
async fn a_settle_is_tried_again_until_the_store_returns() {
    let world = World::new();
    let (engine, wire) = world.process();
    let running = permit(engine.begin(&ask("k")).await.unwrap());
    wire.cut([Cut::Refused, Cut::RequestLost, Cut::Refused, Cut::Panic]);
    running.settle(paid("paid")).await.unwrap();
    assert_eq!(world.record("k").await.unwrap().outcome(), Some(&outcome("paid")));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_recorded_is_reported_and_left_to_recovery() {
    let world = World::new();
    let options = Options { settle_patience: Duration::from_secs(2), ..Options::default() };
    let (engine, wire) = world.process_with(options);
    let request = ask_with("k", Recovery::Hold, b"r");
    let running = permit(engine.begin(&request).await.unwrap());
    wire.cut([Cut::Refused; 100]);
    let settled = running.settle(paid("paid")).await;
    assert!(matches!(settled, Err(SettleError::NotRecorded(StoreError::Unavailable(_)))));
    assert_eq!(engine.stats().settles_not_recorded, 1);
    let (elsewhere, _) = world.process();
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::InDoubt);
    assert_eq!(elsewhere.stats().swept_in_doubt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_costs_one_batch_not_the_engine() {
    let world = World::new();
    let (engine, wire) = world.process();
    wire.cut([Cut::Panic]);
    pay(&engine, &ask("k"), "paid").await;
    pay(&engine, &ask("k2"), "paid").await;
    assert_eq!(world.record("k").await.unwrap().outcome(), Some(&outcome("paid")));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_mixes_up_its_answers_is_not_believed() {
    let world = World::new();
    let keys = ["alone", "one", "other"];
    let (engine, _) = world.process();
    for key in keys {
        pay(&engine, &ask(key), key).await;
    }
    let (engine, wire) = world.process();
    settle_down().await;
    wire.hold();
    // The first is asked for alone, the others share the next commit.
    wire.cut([Cut::Swapped, Cut::Swapped]);
    let asking = keys.map(|key| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.begin(&ask(key)).await })
    });
    settle_down().await;
    wire.let_go();
    let [alone, one, other] = asking;
    assert_eq!(replayed(&alone.await.unwrap().unwrap()), outcome("alone"));
    for mixed_up in [one, other] {
        let mixed_up = mixed_up.await;
        assert!(!matches!(mixed_up, Ok(Ok(_))), "{mixed_up:?}");
    }
}
