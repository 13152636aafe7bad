//! Steps where something is lost: the lease, the wire, the caller, the operation itself.

use std::{convert::Infallible, time::Duration};

use hapax_core::{
    AnswerMeaning, StateTag,
    limits::{STEP_RESULT_BYTES_MAX, STEPS_MAX},
};
use hapax_engine::{Admission, STEPS_PAUSE, Settled, StepError, steps::Stop};

use crate::{
    steps::{Ledger, begin, follow, request, step},
    world::{Cut, LEASE, World, answered, ask, outcome, paid, permit, replayed, settle_down},
};

#[tokio::test(start_paused = true)]
async fn a_stale_owner_has_no_further_effect() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let stale = begin(&engine).await;
    wire.hold();
    tokio::time::sleep(LEASE * 2).await;
    let refused = stale.steps().step("charge", |key| ledger.have("charge", key)).await;
    assert!(matches!(refused, Err(StepError::Stop(Stop::Superseded))));
    assert!(ledger.whats().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stale_owner_keeps_nothing() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let stale = begin(&engine).await;
    let steps = stale.steps();
    let slow = |key| {
        let (ledger, wire) = (ledger.clone(), wire.clone());
        async move {
            let happened = ledger.have("charge", key).await;
            wire.hold();
            tokio::time::sleep(LEASE * 2).await;
            happened
        }
    };
    let (refused, _) = tokio::join!(async { steps.step("charge", slow).await }, async {
        tokio::time::sleep(LEASE * 2).await;
        let second = begin(&world.process().0).await;
        step(&second.steps(), &ledger, "charge").await;
        second.settle(paid("paid")).await.unwrap();
        wire.let_go();
    });
    assert!(matches!(refused, Err(StepError::Stop(Stop::Superseded))), "{refused:?}");
    let kept = world.steps("k").await;
    assert_eq!(kept.len(), 1);
    assert_eq!(&kept[0].step.result()[..], b"2", "the result of the owner that counts");
}

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_once_whatever_the_wire_does() {
    for cut in [Cut::Refused, Cut::AnswerLost, Cut::RequestLost] {
        let (world, ledger) = (World::new(), Ledger::default());
        let (engine, wire) = world.process();
        let running = begin(&engine).await;
        wire.cut([cut; 3]);
        assert_eq!(step(&running.steps(), &ledger, "charge").await, 1, "{cut:?}");
        assert_eq!(ledger.whats(), ["charge"]);
        assert_eq!(world.steps("k").await.len(), 1, "{cut:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_a_step_that_could_not_be_kept() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let running = begin(&engine).await;
    let steps = running.steps();
    wire.cut(std::iter::repeat_n(Cut::Refused, 100));
    let refused = steps.step("charge", |key| ledger.have("charge", key)).await;
    assert!(matches!(refused, Err(StepError::Stop(Stop::NotKept(_)))), "{refused:?}");
    let next = steps.step("record", |key| ledger.have("record", key)).await;
    assert!(matches!(next, Err(StepError::Stop(Stop::Broken))), "{next:?}");
    assert_eq!(ledger.whats(), ["charge"]);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_even_if_nobody_waits_for_it_any_more() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let running = begin(&engine).await;
    let (steps, effects) = (running.steps(), ledger.clone());
    wire.hold();
    let task = tokio::spawn(async move { step(&steps, &effects, "charge").await });
    settle_down().await;
    task.abort();
    settle_down().await;
    wire.let_go();
    settle_down().await;
    assert_eq!(ledger.whats(), ["charge"]);
    assert_eq!(world.steps("k").await.len(), 1);
    let after = running.steps().step("charge", |key| ledger.have("charge", key)).await;
    assert!(matches!(after, Err(StepError::Stop(Stop::Broken))));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_or_too_much_is_refused() {
    let world = World::new();
    let (engine, _) = world.process();
    let running = begin(&engine).await;
    let steps = running.steps();
    let unnamed = steps.step("", |_| async { Ok::<_, Infallible>(()) }).await;
    assert!(matches!(unnamed, Err(StepError::Stop(Stop::Name(_)))));
    for number in 1..=STEPS_MAX {
        let kept = steps.step("one of many", |_| async { Ok::<_, Infallible>(number) }).await;
        assert_eq!(kept.unwrap(), number);
    }
    let too_many = steps.step("one too many", |_| async { Ok::<_, Infallible>(()) }).await;
    assert!(matches!(too_many, Err(StepError::Stop(Stop::TooMany(_)))));

    let other = permit(engine.begin(&ask("other")).await.unwrap());
    let large = "x".repeat(STEP_RESULT_BYTES_MAX);
    let steps = other.steps();
    let refused = steps.step("large", |_| async { Ok::<_, Infallible>(large.clone()) }).await;
    assert!(matches!(refused, Err(StepError::Stop(Stop::NotKeepable(_)))));
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_steps_have_begun_is_left_and_not_released() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, _) = world.process();
    let unfinished =
        [AnswerMeaning::Inconclusive, AnswerMeaning::TakenForNotDone, AnswerMeaning::NotDone];
    for (attempt, meaning) in (1..).zip(unfinished) {
        let running = begin(&engine).await;
        assert_eq!(running.attempt().fence.get(), attempt);
        step(&running.steps(), &ledger, "charge").await;
        let settled = running.settle(answered(meaning)).await.unwrap();
        assert!(matches!(settled, Settled::Done(record) if record.tag() == StateTag::Running));
        let begun = engine.begin(&request()).await.unwrap();
        let Admission::Busy { lease_left, .. } = begun else { panic!("{begun:?}") };
        assert_eq!(lease_left, STEPS_PAUSE);
        tokio::time::sleep(STEPS_PAUSE).await;
    }
    let ignorant = begin(&engine).await;
    let settled = ignorant.settle(answered(AnswerMeaning::Inconclusive)).await.unwrap();
    assert!(matches!(settled, Settled::Done(record) if record.tag() == StateTag::Running));
    assert_eq!(ledger.whats(), ["charge"], "an attempt that asked for no step forgets none either");
}

#[tokio::test(start_paused = true)]
async fn an_operation_without_steps_is_released_as_ever() {
    let world = World::new();
    let (engine, wire) = world.process();
    let followed = follow(&world, (begin(&engine).await, wire)).await;
    let settled = followed.settle(answered(AnswerMeaning::NotDone)).await.unwrap();
    assert!(matches!(settled, Settled::Done(record) if record.tag() == StateTag::Released));
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_is_given_back_as_it_was_found() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let first = begin(&engine).await;
    step(&first.steps(), &ledger, "charge").await;
    let second = follow(&world, (first, wire)).await;
    second.give_back().await.unwrap();
    let third = begin(&world.process().0).await;
    assert_eq!(third.attempt().fence.get(), 3);
    step(&third.steps(), &ledger, "charge").await;
    assert_eq!(ledger.whats(), ["charge"]);
    third.settle(paid("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sweeper_that_cannot_finish_an_operation_with_steps_does_not_release_it() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let first = begin(&engine).await;
    step(&first.steps(), &ledger, "charge").await;
    wire.hold();
    std::mem::forget(first);
    let (sweeping, _) = world.process();
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::InDoubt);
    let heir = begin(&sweeping).await;
    step(&heir.steps(), &ledger, "charge").await;
    heir.settle(paid("paid")).await.unwrap();
    assert_eq!(ledger.whats(), ["charge"]);
    assert_eq!(replayed(&sweeping.begin(&request()).await.unwrap()), outcome("paid"));
}

#[tokio::test(start_paused = true)]
async fn leaving_an_operation_somebody_else_has_changes_nothing() {
    let world = World::new();
    let (engine, wire) = world.process();
    let stale = begin(&engine).await;
    wire.hold();
    tokio::time::sleep(LEASE * 2).await;
    let second = begin(&world.process().0).await;
    wire.let_go();
    let left = stale.leave(Duration::ZERO).await.unwrap();
    assert!(matches!(left, Settled::Superseded(Some(record)) if record.fence.get() == 2));
    second.settle(paid("by the owner that counts")).await.unwrap();
}
