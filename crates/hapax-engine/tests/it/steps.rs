//! The steps of one attempt, and of those that follow it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_core::{
    Key, Recovery, StepName,
    retry::{Backoff, Jitter, Schedule},
};
use hapax_engine::{Engine, Permit, Probed, StepError, Steps, steps::Stop};

use crate::world::{LEASE, Wire, World, ask_with, paid, permit, settle_down};

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

pub(crate) fn request() -> hapax_engine::BeginRequest<'static> {
    ask_with("k", Recovery::Resend, b"pay 100")
}

pub(crate) async fn begin(engine: &Engine) -> Permit {
    permit(engine.begin(&request()).await.unwrap())
}

/// The process dies with the permit in its hands; somebody else takes over.
pub(crate) async fn follow(world: &World, dying: (Permit, Wire)) -> Permit {
    let (running, wire) = dying;
    wire.hold();
    std::mem::forget(running);
    tokio::time::sleep(LEASE * 2).await;
    begin(&world.process().0).await
}

pub(crate) async fn step(steps: &Steps, ledger: &Ledger, name: &str) -> usize {
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
        let call = |steps: Steps, name: &'static str| {
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
