//! The steps of one attempt, and of those that follow it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_core::{
    Ended, Key, Outcome, Recovery, StateTag, StepName,
    limits::{STEP_RESULT_BYTES_MAX, STEPS_MAX},
    retry::{Backoff, Jitter, Schedule},
};
use hapax_engine::{
    Begun, Engine, Permit, Probed, STEPS_PAUSE, Settled, StepError, Steps, steps::Stop,
};

use crate::world::{
    Cut, LEASE, Wire, World, ask, ask_with, outcome, paid, permit, replayed, settle_down,
};

/// What happened outside, in order.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<(String, Key)>>>);

impl Ledger {
    /// An effect that counts how often it happened.
    pub(crate) async fn have(&self, what: &str, key: Key) -> Result<usize, Infallible> {
        let mut ledger = self.0.lock().unwrap();
        ledger.push((what.to_owned(), key));
        Ok(ledger.len())
    }

    pub(crate) fn whats(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(what, _)| what.clone()).collect()
    }

    fn keys(&self) -> Vec<Key> {
        self.0.lock().unwrap().iter().map(|(_, key)| key.clone()).collect()
    }
}

fn request() -> hapax_engine::Ask {
    ask_with("k", Recovery::Resend, b"pay 100")
}

async fn begin(engine: &Engine<Wire>) -> Permit<Wire> {
    permit(engine.begin(&request()).await.unwrap())
}

/// The process dies with the permit in its hands; somebody else takes over.
async fn follow(world: &World, dying: (Permit<Wire>, Wire)) -> Permit<Wire> {
    let (running, wire) = dying;
    wire.hold();
    std::mem::forget(running);
    tokio::time::sleep(LEASE * 2).await;
    begin(&world.process().0).await
}

async fn step(steps: &Steps<Wire>, ledger: &Ledger, name: &str) -> usize {
    steps.step(name, |key| ledger.have(name, key)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_finished_step_is_answered_from_what_is_kept() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let first = begin(&engine).await;
    assert_eq!(step(&first.steps(), &ledger, "charge").await, 1);
    assert_eq!(step(&first.steps(), &ledger, "record").await, 2);
    let second = follow(&world, (first, wire)).await;
    for (name, result) in [("charge", 1), ("record", 2), ("mail", 3)] {
        assert_eq!(step(&second.steps(), &ledger, name).await, result);
    }
    assert_eq!(ledger.whats(), ["charge", "record", "mail"]);
    second.settle(paid("paid")).await.unwrap();
    assert_eq!(engine.stats().steps, 2);
}

#[tokio::test(start_paused = true)]
async fn an_effect_cut_off_by_a_crash_is_repeated_under_the_same_key() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let first = begin(&engine).await;
    let steps = first.steps();
    let effects = ledger.clone();
    tokio::spawn(async move {
        let hang = |key| {
            let effects = effects.clone();
            async move {
                effects.have("charge", key).await?;
                std::future::pending::<Result<usize, Infallible>>().await
            }
        };
        steps.step("charge", hang).await
    });
    settle_down().await;
    assert_eq!(ledger.whats(), ["charge"]);
    let second = follow(&world, (first, wire)).await;
    step(&second.steps(), &ledger, "charge").await;
    let keys = ledger.keys();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0], StepName::parse("charge").unwrap().key_for(request().operation.id()));
}

#[tokio::test(start_paused = true)]
async fn another_order_is_refused_and_nothing_is_run() {
    let names = ["charge", "record", "mail", "notify"];
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (world, ledger) = (World::new(), Ledger::default());
        let (engine, wire) = world.process();
        let first = begin(&engine).await;
        let kept = rng.usize(1..=names.len());
        for name in &names[..kept] {
            step(&first.steps(), &ledger, name).await;
        }
        let second = follow(&world, (first, wire)).await;
        let mut changed = names;
        rng.shuffle(&mut changed);
        let same = changed.iter().zip(&names[..kept]).take_while(|(a, b)| a == b).count();
        for name in &changed[..same] {
            step(&second.steps(), &ledger, name).await;
        }
        assert_eq!(ledger.whats().len(), kept, "seed {seed}: finished steps are not run again");
        if same == kept {
            continue;
        }
        let steps = second.steps();
        let refused = steps.step(changed[same], |key| ledger.have("wrong", key)).await;
        let Err(StepError::Stop(Stop::OrderChanged { number, stored, asked })) = refused else {
            panic!("seed {seed}: {refused:?}");
        };
        assert_eq!(usize::from(number), same + 1, "seed {seed}");
        assert_eq!((stored.as_str(), asked.as_str()), (names[same], changed[same]), "seed {seed}");
        assert_eq!(ledger.whats().len(), kept, "seed {seed}: nothing was run");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_failed_is_not_passed_over() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, _) = world.process();
    let running = begin(&engine).await;
    let steps = running.steps();
    let failed: Result<usize, _> = steps.step("charge", |_| async { Err("refused") }).await;
    assert!(matches!(failed, Err(StepError::Failed("refused"))));
    let passed_over = steps.step("record", |key| ledger.have("record", key)).await;
    assert!(matches!(passed_over, Err(StepError::Stop(Stop::OrderChanged { number: 1, .. }))));
    assert_eq!(step(&steps, &ledger, "charge").await, 1);
    assert_eq!(step(&steps, &ledger, "record").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_another_version_is_refused_unless_it_can_be_migrated() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let first = begin(&engine).await;
    step(&first.steps(), &ledger, "charge").await;
    let second = follow(&world, (first, wire)).await;
    let steps = second.steps();
    let charge = |key: Key| {
        let ledger = ledger.clone();
        async move { ledger.have("charge", key).await.map(|count| format!("receipt {count}")) }
    };
    let refused = steps.step("charge", charge).version(2).await;
    let Err(StepError::Stop(Stop::VersionChanged { stored: 1, asked: 2, .. })) = refused else {
        panic!("{refused:?}");
    };
    let unreadable = steps.step("charge", charge).await;
    assert!(matches!(unreadable, Err(StepError::Stop(Stop::Unreadable(_)))), "{unreadable:?}");
    let migrated = steps.step("charge", charge).version(2).migrate(|version, json| {
        let count: usize = serde_json::from_slice(json)?;
        Ok(format!("receipt {count} of version {version}"))
    });
    assert_eq!(migrated.await.unwrap(), "receipt 1 of version 1");
    assert_eq!(ledger.whats(), ["charge"]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_is_asked_before_an_effect_is_repeated_and_never_before_the_first() {
    for (found, effects) in
        [(Probed::Happened(7), vec!["charge"]), (Probed::DidNot, vec!["charge", "record"])]
    {
        let (world, ledger) = (World::new(), Ledger::default());
        let (engine, wire) = world.process();
        let first = begin(&engine).await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let call = |steps: Steps<Wire>, name: &'static str| {
            let (ledger, asked, found) = (ledger.clone(), Arc::clone(&asked), found.clone());
            async move {
                let probe = |key| {
                    asked.lock().unwrap().push(key);
                    let found = found.clone();
                    async move { found }
                };
                steps.step(name, |key| ledger.have(name, key)).probe(probe).await
            }
        };
        call(first.steps(), "charge").await.unwrap();
        assert!(asked.lock().unwrap().is_empty(), "nobody can have done it before");
        let second = follow(&world, (first, wire)).await;
        call(second.steps(), "charge").await.unwrap();
        assert!(asked.lock().unwrap().is_empty(), "it is kept");
        let result = call(second.steps(), "record").await.unwrap();
        assert_eq!(asked.lock().unwrap().len(), 1, "the owner before may have done it");
        assert_eq!(ledger.whats(), effects);
        assert_eq!(result, if effects.len() == 1 { 7 } else { 2 });
        call(second.steps(), "mail").await.unwrap();
        assert_eq!(asked.lock().unwrap().len(), 1, "nobody came this far before");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_probe_cannot_tell_is_not_tried() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, wire) = world.process();
    let second = follow(&world, (begin(&engine).await, wire)).await;
    let steps = second.steps();
    let call = steps.step("charge", |key| ledger.have("charge", key));
    let unknown = call.probe(|_| async { Probed::Unknown }).await;
    assert!(matches!(unknown, Err(StepError::Stop(Stop::Unknown))));
    assert!(ledger.whats().is_empty());
}

fn schedule(attempts_max: u32) -> Schedule {
    let (jitter, base) = (Jitter::None, Duration::from_secs(1));
    Schedule::new(Backoff { jitter, base, cap: base * 60 }, attempts_max).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_step_is_tried_again_as_its_schedule_says_and_probed_in_between() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, _) = world.process();
    let running = begin(&engine).await;
    let (steps, mut probes) = (running.steps(), 0);
    let began = tokio::time::Instant::now();
    let flaky = |key| {
        let ledger = ledger.clone();
        async move {
            let count = ledger.have("charge", key).await.unwrap();
            if count < 4 { Err("timed out") } else { Ok(count) }
        }
    };
    let probe = |_| {
        probes += 1;
        async { Probed::DidNot }
    };
    let charged = steps.step("charge", flaky).retry(schedule(10)).probe(probe).await;
    assert_eq!(charged.unwrap(), 4);
    assert_eq!(began.elapsed(), Duration::from_secs(1 + 2 + 4));
    assert_eq!(probes, 3);
    let keys = ledger.keys();
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[tokio::test(start_paused = true)]
async fn a_step_gives_up_with_its_schedule_or_when_the_error_does_not_pass() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, _) = world.process();
    let running = begin(&engine).await;
    let steps = running.steps();
    let fail = |key| {
        let ledger = ledger.clone();
        async move { Err::<usize, _>(ledger.have("charge", key).await.unwrap()) }
    };
    let used_up = steps.step("charge", fail).retry(schedule(3)).await;
    assert!(matches!(used_up, Err(StepError::Failed(3))));
    let final_error = steps.step("charge", fail).retry_if(schedule(9), |count| *count < 5).await;
    assert!(matches!(final_error, Err(StepError::Failed(5))));
}

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
    for attempt in 1..=3 {
        let running = begin(&engine).await;
        assert_eq!(running.attempt().fence.get(), attempt);
        step(&running.steps(), &ledger, "charge").await;
        let settled = running.settle(Ended::Answered(Outcome::bare(503))).await.unwrap();
        assert!(matches!(settled, Settled::Done(record) if record.tag() == StateTag::Running));
        let begun = engine.begin(&request()).await.unwrap();
        let Begun::Busy { lease_left } = begun else { panic!("{begun:?}") };
        assert_eq!(lease_left, STEPS_PAUSE);
        tokio::time::sleep(STEPS_PAUSE).await;
    }
    let ignorant = begin(&engine).await;
    let settled = ignorant.settle(Ended::Answered(Outcome::bare(503))).await.unwrap();
    assert!(matches!(settled, Settled::Done(record) if record.tag() == StateTag::Running));
    assert_eq!(ledger.whats(), ["charge"], "an attempt that asked for no step forgets none either");
}

#[tokio::test(start_paused = true)]
async fn an_operation_without_steps_is_released_as_ever() {
    let world = World::new();
    let (engine, wire) = world.process();
    let followed = follow(&world, (begin(&engine).await, wire)).await;
    let settled = followed.settle(Ended::Answered(Outcome::bare(503))).await.unwrap();
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

#[tokio::test(start_paused = true)]
async fn code_that_is_run_again_in_one_attempt_starts_over_and_repeats_nothing() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, _) = world.process();
    let running = begin(&engine).await;
    let steps = running.steps();
    for (pass, names) in [&["charge"][..], &["charge", "record"], &["charge", "record", "mail"]]
        .into_iter()
        .enumerate()
    {
        steps.rewind().await;
        for name in names {
            let probe = |_| async { panic!("{name} was never tried before pass {pass}") };
            let call = steps.step(name, |key| ledger.have(name, key)).probe(probe);
            call.await.unwrap();
        }
    }
    assert_eq!(ledger.whats(), ["charge", "record", "mail"]);
}

#[tokio::test(start_paused = true)]
async fn steps_of_one_attempt_take_turns() {
    let (world, ledger) = (World::new(), Ledger::default());
    let (engine, _) = world.process();
    let running = begin(&engine).await;
    let (one, two) = (running.steps(), running.steps());
    let slow = |key| {
        let ledger = ledger.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            ledger.have("slow", key).await
        }
    };
    let (first, second) =
        tokio::join!(async { one.step("slow", slow).await }, step(&two, &ledger, "quick"));
    assert_eq!((first.unwrap(), second), (1, 2));
    assert_eq!(world.steps("k").await.len(), 2);
}
