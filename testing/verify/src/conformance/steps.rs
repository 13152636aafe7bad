//! Steps: what the parts of an operation came to, kept by its owner alone and for one life.

use bytes::Bytes;
use hapax_core::{
    Fence, OperationId, Owner, Recovery, Step, StepName, Store, StoreError,
    limits::{STEP_NAME_BYTES_MAX, STEP_RESULT_BYTES_MAX, STEPS_MAX},
    store::{KeepStep, Write, Written},
};

use super::{
    Backend, Damage,
    scene::{
        LEASE, ScenarioCaller, StoreScene, WINDOW, arrive, commit_one, done, enter, now, outcome,
        purge_all, record, stored, write,
    },
};

/// Every step comes back as it was kept, in order, with the instant it was kept at, on every handle.
pub async fn steps_come_back_in_order_as_they_were_kept<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("stepping");
    let fence = enter(&scene.store, &caller).await;
    let id = caller.id();
    assert!(scene.store.steps(id).await.unwrap().is_empty());
    let longest = "~".repeat(STEP_NAME_BYTES_MAX);
    let written = [step(1, "charge", 1, b"{\"id\":7}"), step(2, &longest, u16::MAX, b"\0\xff")];
    let before = now(&scene.store).await;
    for step in &written {
        kept(&scene.store, &caller, fence, step.clone()).await;
    }
    let after = now(&scene.store).await;
    for store in [&scene.store, &scene.open().await] {
        let found = store.steps(id).await.unwrap();
        assert!(found.iter().all(|stored| before <= stored.at && stored.at <= after));
        assert_eq!(found.into_iter().map(|stored| stored.step).collect::<Vec<_>>(), written);
    }
}

/// Whoever does not run the operation, under its fence and name and in its life, keeps nothing.
pub async fn only_the_running_owner_keeps_steps<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let caller = ScenarioCaller::new("k").recovering(Recovery::Resend);
    let fence = enter(store, &caller).await;
    let mine = keep(store, &caller, fence, step(1, "mine", 1, b"x")).await;
    let strangers = [
        KeepStep { owner: Owner(99), ..mine.clone() },
        KeepStep { fence: fence.next(), ..mine.clone() },
        KeepStep { life: mine.life.plus(LEASE), ..mine.clone() },
        KeepStep { id: ScenarioCaller::new("nobody").id(), ..mine.clone() },
    ];
    for stranger in strangers {
        not_kept(store, stranger).await;
    }
    scene.pass(LEASE).await;
    let heir = caller.clone().owner(2);
    enter(store, &heir).await;
    not_kept(store, mine).await;
    assert!(store.steps(caller.id()).await.unwrap().is_empty());

    let others = [
        ("queued", caller.clone().of(ScenarioCaller::new("queued").operation).queueing(b"later")),
        ("finished", ScenarioCaller::new("finished")),
    ];
    for (state, other) in others {
        let fence = enter(store, &other).await;
        if state == "finished" {
            done(store, other.answers(fence, outcome(200, "done"))).await;
        }
        let late = keep(store, &other, fence, step(1, "late", 1, b"x")).await;
        not_kept(store, late).await;
        assert!(store.steps(other.id()).await.unwrap().is_empty());
    }
}

/// Keeping a number again answers that it is kept, and changes nothing.
pub async fn a_step_that_is_kept_stays_as_it_is<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("k");
    let fence = enter(&scene.store, &caller).await;
    kept(&scene.store, &caller, fence, step(1, "charge", 1, b"first")).await;
    let before = scene.store.steps(caller.id()).await.unwrap();
    scene.pass(LEASE / 2).await;
    kept(&scene.store, &caller, fence, step(1, "charge", 1, b"second")).await;
    assert_eq!(scene.store.steps(caller.id()).await.unwrap(), before);
}

/// Whoever takes over finds what was finished, and goes on from there.
pub async fn whoever_takes_over_finds_the_steps<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("k").recovering(Recovery::Resend);
    let fence = enter(&scene.store, &caller).await;
    kept(&scene.store, &caller, fence, step(1, "charge", 1, b"1")).await;
    scene.pass(LEASE).await;
    let heir = caller.clone().owner(2);
    let fence = enter(&scene.store, &heir).await;
    assert_eq!(names(&scene.store, caller.id()).await, ["charge"]);
    kept(&scene.store, &heir, fence, step(2, "mail", 1, b"2")).await;
    assert_eq!(names(&scene.store, caller.id()).await, ["charge", "mail"]);
}

/// A life that begins after a release, or after retention, knows nothing of the one before.
pub async fn a_new_life_starts_without_steps<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let caller = ScenarioCaller::new("k");
    let fence = enter(store, &caller).await;
    for number in 1..=2 {
        kept(store, &caller, fence, step(number, "of the first life", 1, b"x")).await;
    }
    done(store, caller.sends_nothing(fence)).await;

    let second = caller.clone().owner(2);
    let fence = enter(store, &second).await;
    assert!(store.steps(caller.id()).await.unwrap().is_empty());
    kept(store, &second, fence, step(1, "of the second life", 1, b"x")).await;
    assert_eq!(names(store, caller.id()).await, ["of the second life"]);
    done(store, second.answers(fence, outcome(200, "done"))).await;

    scene.pass(WINDOW).await;
    let third = caller.clone().owner(3);
    let fence = enter(store, &third).await;
    assert!(store.steps(caller.id()).await.unwrap().is_empty());
    kept(store, &third, fence, step(1, "of the third life", 1, b"x")).await;
    assert_eq!(names(store, caller.id()).await, ["of the third life"]);
}

/// Steps belong to one operation; a batch of many is answered item by item.
pub async fn steps_belong_to_their_operation<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let callers: Vec<_> = (0..20).map(|at| ScenarioCaller::new(&format!("k{at}"))).collect();
    let mut steps = Vec::new();
    for (at, caller) in callers.iter().enumerate() {
        let fence = enter(&scene.store, caller).await;
        let of = if at % 3 == 0 { fence.next() } else { fence };
        let step = step(1, &format!("s{at}"), 1, b"x");
        steps.push(Write::Step(keep(&scene.store, caller, of, step).await));
    }
    let answers = scene.store.commit(steps).await;
    assert_eq!(answers.len(), callers.len());
    for (at, (caller, answer)) in callers.iter().zip(answers).enumerate() {
        let names = names(&scene.store, caller.id()).await;
        match answer.unwrap() {
            Written::Done { .. } => {
                assert!(at % 3 != 0 && names == [format!("s{at}")], "{names:?}")
            }
            Written::Refused { .. } => assert!(at % 3 == 0 && names.is_empty(), "{names:?}"),
        }
    }
}

/// The largest result, the highest number and an empty result come back byte for byte.
pub async fn the_largest_step_comes_back_byte_for_byte<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("k");
    let fence = enter(&scene.store, &caller).await;
    let mut bytes: Vec<u8> = (0..=255).cycle().take(STEP_RESULT_BYTES_MAX).collect();
    bytes[STEP_RESULT_BYTES_MAX - 1] = 0;
    kept(&scene.store, &caller, fence, step(1, "largest", 1, &bytes)).await;
    for number in 2..=STEPS_MAX {
        kept(&scene.store, &caller, fence, step(number, "small", 0, b"")).await;
    }
    let found = scene.store.steps(caller.id()).await.unwrap();
    assert_eq!(found.len(), usize::from(STEPS_MAX));
    assert!(found[0].step.result() == &bytes, "the largest result is as it was");
    assert_eq!(found[usize::from(STEPS_MAX) - 1].step, step(STEPS_MAX, "small", 0, b""));
}

/// People can look at the steps of what is finished or in doubt.
pub async fn finished_steps_outlive_the_end_of_their_attempt<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let [finished, doubtful] = ["finished", "in doubt"].map(ScenarioCaller::new);
    for caller in [&finished, &doubtful] {
        let fence = enter(&scene.store, caller).await;
        kept(&scene.store, caller, fence, step(1, "charge", 1, b"1")).await;
    }
    done(&scene.store, finished.answers(Fence::FIRST, outcome(201, "done"))).await;
    done(&scene.store, doubtful.hears_nothing(Fence::FIRST)).await;
    for caller in [&finished, &doubtful] {
        assert_eq!(names(&scene.store, caller.id()).await, ["charge"]);
    }
}

/// Steps go when their record is removed or buried, and no sooner.
pub async fn steps_go_with_their_record<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let [removed, buried] =
        [ScenarioCaller::new("removed"), ScenarioCaller::new("buried").burying(WINDOW)];
    let running = ScenarioCaller::new("running");
    for caller in [&removed, &buried, &running] {
        let fence = enter(store, caller).await;
        kept(store, caller, fence, step(1, "charge", 1, b"1")).await;
    }
    for caller in [&removed, &buried] {
        done(store, caller.answers(Fence::FIRST, outcome(201, "done"))).await;
    }
    purge_all(store).await;
    assert_eq!(names(store, removed.id()).await, ["charge"], "it is not due");
    scene.pass(WINDOW + LEASE).await;
    let purged = purge_all(store).await;
    assert_eq!((purged.deleted, purged.buried), (1, 1));
    assert_eq!(record(store, removed.id()).await, None);
    for caller in [&removed, &buried] {
        assert!(store.steps(caller.id()).await.unwrap().is_empty());
    }
    assert_eq!(names(store, running.id()).await, ["charge"]);
}

/// A step in which a bit flipped is not served.
pub async fn a_flipped_bit_of_a_step_is_not_served<B: Backend>() {
    check_damage::<B>(Damage::FlippedStepBit, |error| matches!(error, StoreError::Damaged(_)))
        .await;
}

/// A step of a newer version is not read.
pub async fn a_newer_step_is_not_read<B: Backend>() {
    check_damage::<B>(Damage::NewerStep, |error| matches!(error, StoreError::TooNew(_))).await;
}

/// Of a step and a takeover at the same time, the takeover finds the step or the step is lost.
pub async fn a_takeover_and_a_step_exclude_each_other<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let (store, other) = (&scene.store, scene.open().await);
    for round in 0..20 {
        let caller = ScenarioCaller::new(&format!("k{round}")).recovering(Recovery::Resend);
        let fence = enter(store, &caller).await;
        scene.pass(LEASE).await;
        let late = keep(store, &caller, fence, step(1, "late", 1, b"x")).await;
        let hapax_core::Decision::TakeOver { claim, .. } =
            arrive(store, &caller.clone().owner(2)).await
        else {
            panic!("a lease that is over is followed");
        };
        let takeover = async {
            let claimed = commit_one(&other, Write::Claim(claim)).await.unwrap();
            assert!(matches!(claimed, Written::Done { .. }), "{claimed:?}");
            names(&other, caller.id()).await
        };
        let (kept, found) = tokio::join!(commit_one(store, Write::Step(late)), takeover);
        let expected: &[&str] = match kept.unwrap() {
            Written::Done { .. } => &["late"],
            Written::Refused { .. } => &[],
        };
        assert_eq!(found, expected, "round {round}");
        assert_eq!(names(store, caller.id()).await, expected, "round {round}");
    }
}

async fn check_damage<B: Backend>(damage: Damage, expected: fn(&StoreError) -> bool) {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let [damaged, whole] = ["damaged", "whole"].map(ScenarioCaller::new);
    for caller in [&damaged, &whole] {
        let fence = enter(store, caller).await;
        kept(store, caller, fence, step(1, "charge", 1, b"receipt")).await;
    }
    scene.backend.damage(damaged.id(), damage).await;
    for store in [store, &scene.open().await] {
        let error = store.steps(damaged.id()).await.unwrap_err();
        assert!(expected(&error), "{error:?}");
        assert_eq!(names(store, whole.id()).await, ["charge"]);
    }
    let settle = damaged.answers(Fence::FIRST, outcome(200, "done"));
    let settled = commit_one(store, Write::Settle(settle)).await;
    assert!(matches!(settled, Ok(Written::Done { .. })), "the record itself is whole");
}

fn step(number: u16, name: &str, version: u16, result: &[u8]) -> Step {
    let name = StepName::parse(name).unwrap();
    Step::new(number, name, version, Bytes::copy_from_slice(result)).unwrap()
}

/// What this caller writes to keep a step of the life that is stored.
async fn keep<S: Store>(store: &S, caller: &ScenarioCaller, fence: Fence, step: Step) -> KeepStep {
    let life = stored(store, caller.id()).await.created_at;
    KeepStep { id: caller.id(), fence, owner: caller.owner, life, step }
}

/// Keeps a step, which must be kept.
async fn kept<S: Store>(store: &S, caller: &ScenarioCaller, fence: Fence, step: Step) {
    let answer = write(store, Write::Step(keep(store, caller, fence, step).await)).await;
    assert!(matches!(answer, Written::Done { .. }), "must be kept, not {answer:?}");
}

/// Keeps a step, which must be refused.
async fn not_kept<S: Store>(store: &S, keep: KeepStep) {
    let answer = write(store, Write::Step(keep)).await;
    assert!(matches!(answer, Written::Refused { .. }), "must be refused, not {answer:?}");
}

async fn names<S: Store>(store: &S, id: OperationId) -> Vec<String> {
    let steps = store.steps(id).await.unwrap();
    steps.into_iter().map(|stored| stored.step.name().as_str().to_owned()).collect()
}
