//! A store that acknowledged, and then forgot: after a failover to a standby that lagged, or a restore.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_core::{Reason, Recovery, StateTag, StoreError, incarnation::LossCause};
use hapax_engine::{Admission, BeginError, Engine, Options};
use tokio::{task::JoinSet, time::sleep};

use crate::world::{
    World, ask, ask_with, outcome, paid, pay, permit, queued, replayed, settle_down,
};

/// Longer than it takes to notice, to compare and to say so.
const NOTICED: Duration = Duration::from_secs(5);

/// Without a memory of finished records, so that the store is asked.
fn options() -> Options {
    Options { cache_bytes_max: 0, ..Options::default() }
}

fn is_quarantined(begun: &Result<Admission, BeginError>) -> bool {
    matches!(begun, Err(BeginError::Quarantined))
}

#[tokio::test(start_paused = true)]
async fn what_a_survivor_was_told_is_written_back_and_nothing_runs_twice() {
    let world = World::replicated(false);
    let (engine, _) = world.process_with(options());
    pay(&engine, &ask("before"), "paid before").await;
    let standby = world.snapshot();
    pay(&engine, &ask("lost"), "paid").await;
    let running = permit(engine.begin(&ask("running")).await.unwrap());
    engine.begin(&queued(ask("queued"))).await.unwrap();
    world.fail_over(&standby, 2);
    assert_eq!(world.record("lost").await, None);
    let begun = engine.begin(&ask("lost")).await;
    assert!(matches!(begun, Err(BeginError::Store(StoreError::Unavailable(_)))), "{begun:?}");
    sleep(NOTICED).await;
    for (key, receipt) in [("lost", "paid"), ("before", "paid before")] {
        let begun = engine.begin(&ask(key)).await.unwrap();
        assert_eq!(replayed(&begun), outcome(receipt), "{key}");
    }
    assert_eq!(world.record("queued").await.unwrap().tag(), StateTag::Pending);
    running.settle(paid("at last")).await.unwrap();
    let begun = engine.begin(&ask("running")).await.unwrap();
    assert_eq!(replayed(&begun), outcome("at last"));
    assert_eq!((engine.quarantine(), engine.stats().restored), (None, 3));
    pay(&engine, &ask("new"), "paid").await;
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_lost_is_written_again_and_a_claim_without_its_owner_is_in_doubt() {
    let world = World::replicated(false);
    let (engine, wire) =
        world.process_with(Options { settle_patience: Duration::ZERO, ..options() });
    let ended = permit(engine.begin(&ask("ended")).await.unwrap());
    let standby = world.snapshot();
    ended.settle(paid("paid")).await.unwrap();
    let unheard = permit(engine.begin(&ask("unheard")).await.unwrap());
    wire.cut([crate::world::Cut::Refused]);
    unheard.settle(paid("paid")).await.unwrap_err();
    world.fail_over(&standby, 2);
    sleep(NOTICED).await;
    assert_eq!(replayed(&engine.begin(&ask("ended")).await.unwrap()), outcome("paid"));
    let begun = engine.begin(&ask("unheard")).await.unwrap();
    assert!(matches!(begun, Admission::InDoubt { .. }), "{begun:?}");
}

/// Pays one key that the standby has and one that it has not, in a process that then dies.
async fn lose(world: &World) {
    let (engine, wire) = world.process_with(options());
    pay(&engine, &ask("kept"), "paid").await;
    let standby = world.snapshot();
    pay(&engine, &ask("lost"), "paid").await;
    wire.hold();
    std::mem::forget(engine);
    world.fail_over(&standby, 2);
}

#[tokio::test(start_paused = true)]
async fn a_fresh_process_runs_nothing_that_is_not_there_until_a_person_says_so() {
    let world = World::replicated(false);
    lose(&world).await;
    let (engine, _) = world.process_with(options());
    assert_eq!(replayed(&engine.begin(&ask("kept")).await.unwrap()), outcome("paid"));
    for key in ["lost", "new"] {
        assert!(is_quarantined(&engine.begin(&ask(key)).await), "{key}");
    }
    sleep(10 * NOTICED).await;
    assert!(is_quarantined(&engine.begin(&ask("lost")).await));
    assert_eq!(engine.quarantine().unwrap().cause, LossCause::Failover);
    let reason = Reason::new("ada", "compared with the bank").unwrap();
    world.operator().lift_quarantine(&reason).await.unwrap();
    sleep(NOTICED).await;
    pay(&engine, &ask("new"), "paid").await;
    let lifted = world.operator().incarnation().await.unwrap().mark.unwrap().lifted.unwrap();
    assert_eq!(lifted.reason, reason);
}

#[tokio::test(start_paused = true)]
async fn commits_that_waited_for_a_standby_need_nobody_to_vouch() {
    let world = World::replicated(true);
    let (engine, wire) = world.process_with(options());
    pay(&engine, &ask("kept"), "paid").await;
    sleep(NOTICED).await;
    let standby = world.snapshot();
    wire.hold();
    std::mem::forget(engine);
    world.fail_over(&standby, 2);
    let (engine, _) = world.process_with(options());
    assert_eq!(replayed(&engine.begin(&ask("kept")).await.unwrap()), outcome("paid"));
    pay(&engine, &ask("new"), "paid").await;
    assert_eq!(engine.quarantine(), None);
    // Whoever looks later can tell that it was noticed.
    let lifted = world.operator().incarnation().await.unwrap().mark.unwrap().lifted.unwrap();
    assert_eq!(lifted.reason.who(), "hapax");
}

#[tokio::test(start_paused = true)]
async fn a_backup_of_a_store_whose_commits_waited_is_still_a_backup() {
    let world = World::replicated(true);
    let (engine, wire) = world.process_with(options());
    pay(&engine, &ask("kept"), "paid").await;
    let backup = world.snapshot();
    sleep(Duration::from_secs(3600)).await;
    wire.hold();
    std::mem::forget(engine);
    world.fail_over(&backup, 2);
    let (engine, _) = world.process_with(options());
    assert!(is_quarantined(&engine.begin(&ask("new")).await));
}

#[tokio::test(start_paused = true)]
async fn a_quarantine_ends_when_all_who_were_at_work_vouch_and_not_before() {
    let world = World::replicated(false);
    let (first, _) = world.process_with(options());
    let (second, wire) = world.process_with(options());
    for (engine, key) in [(&first, "a"), (&second, "b")] {
        pay(engine, &ask(key), "paid").await;
    }
    sleep(NOTICED).await;
    let standby = world.snapshot();
    pay(&second, &ask("lost"), "paid").await;
    wire.hold();
    world.fail_over(&standby, 2);
    sleep(NOTICED).await;
    assert!(is_quarantined(&first.begin(&ask("lost")).await));
    wire.let_go();
    sleep(2 * NOTICED).await;
    assert_eq!(replayed(&first.begin(&ask("lost")).await.unwrap()), outcome("paid"));
    assert_eq!((first.quarantine(), second.quarantine()), (None, None));
    pay(&first, &ask("new"), "paid").await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_left_in_good_order_needs_not_vouch() {
    let world = World::replicated(false);
    let (first, _) = world.process_with(options());
    let (second, _) = world.process_with(options());
    pay(&first, &ask("a"), "paid").await;
    pay(&second, &ask("b"), "paid").await;
    assert!(second.shut_down(NOTICED).await);
    let standby = world.snapshot();
    world.fail_over(&standby, 2);
    sleep(NOTICED).await;
    pay(&first, &ask("new"), "paid").await;
}

#[tokio::test(start_paused = true)]
async fn who_remembers_less_than_was_lost_does_not_vouch() {
    let world = World::replicated(false);
    let (engine, _) = world.process_with(Options { acknowledged_bytes_max: 2000, ..options() });
    let standby = world.snapshot();
    for key in 0..8 {
        pay(&engine, &ask(&format!("lost {key}")), "paid").await;
    }
    world.fail_over(&standby, 2);
    sleep(NOTICED).await;
    assert_eq!(engine.quarantine().unwrap().cause, LossCause::Restore);
    assert_eq!(replayed(&engine.begin(&ask("lost 7")).await.unwrap()), outcome("paid"));
    assert!(is_quarantined(&engine.begin(&ask("lost 0")).await));
}

#[tokio::test(start_paused = true)]
async fn a_restore_from_longer_ago_than_is_remembered_is_for_a_person() {
    let world = World::replicated(false);
    let (engine, _) = world.process_with(options());
    pay(&engine, &ask("kept"), "paid").await;
    let backup = world.snapshot();
    sleep(Duration::from_secs(300)).await;
    world.fail_over(&backup, 2);
    sleep(NOTICED).await;
    assert_eq!(engine.quarantine().unwrap().cause, LossCause::Restore);
    assert_eq!(replayed(&engine.begin(&ask("kept")).await.unwrap()), outcome("paid"));
    assert!(is_quarantined(&engine.begin(&ask("new")).await));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_went_back_without_a_new_timeline_is_noticed_too() {
    let world = World::replicated(false);
    let (engine, _) = world.process_with(options());
    pay(&engine, &ask("kept"), "paid").await;
    let files = world.snapshot();
    sleep(NOTICED).await;
    pay(&engine, &ask("lost"), "paid").await;
    world.fail_over(&files, 1);
    sleep(NOTICED).await;
    assert!(is_quarantined(&engine.begin(&ask("new")).await));
    assert_eq!(replayed(&engine.begin(&ask("lost")).await.unwrap()), outcome("paid"));
}

#[tokio::test(start_paused = true)]
async fn an_old_primary_that_comes_back_is_not_gone_back_to() {
    let world = World::replicated(false);
    let (engine, _) = world.process_with(options());
    pay(&engine, &ask("before"), "paid").await;
    let primary = world.snapshot();
    world.fail_over(&primary, 2);
    sleep(NOTICED).await;
    pay(&engine, &ask("after"), "paid").await;
    let successor = world.snapshot();
    world.fail_over(&primary, 1);
    for key in ["after", "new"] {
        sleep(NOTICED).await;
        let begun = engine.begin(&ask(key)).await;
        assert!(matches!(begun, Err(BeginError::Store(StoreError::Unavailable(_)))), "{begun:?}");
        assert_eq!(world.record(key).await, None);
    }
    world.fail_over(&successor, 2);
    sleep(NOTICED).await;
    assert_eq!(replayed(&engine.begin(&ask("after")).await.unwrap()), outcome("paid"));
    pay(&engine, &ask("new"), "paid").await;
    assert_eq!(engine.quarantine(), None);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_only_stopped_and_came_back_is_as_it_was() {
    let world = World::replicated(false);
    let (engine, wire) = world.process_with(options());
    pay(&engine, &ask("k"), "paid").await;
    wire.hold();
    sleep(Duration::from_secs(20)).await;
    wire.let_go();
    std::mem::forget(engine);
    let (engine, _) = world.process_with(options());
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
    pay(&engine, &ask("new"), "paid").await;
    assert_eq!(engine.quarantine(), None);
}

#[tokio::test(start_paused = true)]
async fn under_quarantine_recovery_goes_on_and_what_was_queued_or_released_waits() {
    let world = World::replicated(false);
    let (engine, wire) = world.process_with(options());
    engine.begin(&queued(ask("queued"))).await.unwrap();
    std::mem::forget(permit(
        engine.begin(&ask_with("resend", Recovery::Resend, b"pay 100")).await.unwrap(),
    ));
    permit(engine.begin(&ask("released")).await.unwrap()).give_back().await.unwrap();
    wire.hold();
    std::mem::forget(engine);
    let standby = world.snapshot();
    world.fail_over(&standby, 2);
    let (engine, _) = world.process_with(options());
    sleep(Duration::from_secs(40)).await;
    assert!(is_quarantined(&engine.begin(&ask("released")).await));
    assert_eq!(world.record("queued").await.unwrap().tag(), StateTag::Pending);
    assert!(matches!(engine.begin(&ask("queued")).await, Ok(Admission::Busy { .. })));
    assert!(is_quarantined(&engine.begin(&ask("new")).await));
}

#[tokio::test(start_paused = true)]
async fn a_person_can_begin_a_quarantine() {
    let world = World::replicated(false);
    let (engine, _) = world.process_with(options());
    pay(&engine, &ask("k"), "paid").await;
    world.operator().begin_quarantine().await.unwrap();
    sleep(NOTICED).await;
    assert_eq!(engine.quarantine().unwrap().cause, LossCause::Declared);
    assert!(is_quarantined(&engine.begin(&ask("new")).await));
    assert_eq!(replayed(&engine.begin(&ask("k")).await.unwrap()), outcome("paid"));
}

/// How often each key was run.
type Effects = Arc<Mutex<HashMap<String, usize>>>;

/// Asks for keys over and over, as clients that retry do.
async fn retry_for_ever(
    engine: Engine,
    keys: Vec<String>,
    effects: Effects,
    mut chance: fastrand::Rng,
) {
    loop {
        let key = &keys[chance.usize(..keys.len())];
        if let Ok(Admission::Execute(permit)) = engine.begin(&ask(key)).await {
            sleep(Duration::from_millis(chance.u64(..200))).await;
            *effects.lock().unwrap().entry(key.clone()).or_default() += 1;
            let _ = permit.settle(paid(key)).await;
        }
        sleep(Duration::from_millis(chance.u64(..40))).await;
    }
}

/// Processes at work through failovers that lose up to three seconds, some of them killed. How often
/// the key that was run most often was run.
async fn most_runs(seed: u64, notices: bool) -> usize {
    let (world, effects) = (World::replicated(false), Effects::default());
    let mut chance = fastrand::Rng::with_seed(seed);
    let (mut clients, mut lives, mut timeline) = (JoinSet::new(), Vec::new(), 1);
    let start = |chance: &mut fastrand::Rng, clients: &mut JoinSet<()>| {
        let (engine, wire) = world.process_with(options());
        for _ in 0..4 {
            let keys = (0..300).map(|key| format!("k{key}")).collect();
            clients.spawn(retry_for_ever(
                engine.clone(),
                keys,
                Arc::clone(&effects),
                chance.fork(),
            ));
        }
        (engine, wire)
    };
    for _ in 0..3 {
        lives.push(start(&mut chance, &mut clients));
    }
    for _ in 0..6 {
        sleep(Duration::from_millis(chance.u64(2_000..9_000))).await;
        let standby = world.snapshot();
        sleep(Duration::from_millis(chance.u64(..3_000))).await;
        if chance.bool() {
            let (engine, wire) = lives.remove(0);
            wire.hold();
            std::mem::forget(engine);
            lives.push(start(&mut chance, &mut clients));
        }
        timeline += i64::from(notices);
        if notices {
            world.fail_over(&standby, timeline);
        } else {
            world.forget_records(&standby);
        }
    }
    sleep(Duration::from_secs(10)).await;
    settle_down().await;
    clients.shutdown().await;
    let effects = effects.lock().unwrap();
    effects.values().copied().max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn whatever_failovers_lose_no_key_runs_twice() {
    for seed in 0..3 {
        assert_eq!(most_runs(seed, true).await, 1, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_loss_that_nothing_tells_of_runs_keys_twice() {
    assert!(most_runs(1, false).await > 1, "the test above cannot fail");
}
