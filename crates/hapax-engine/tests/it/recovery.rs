use std::time::Duration;

use hapax_core::{Doubt, Record, Recovery, State, StateTag};
use hapax_engine::{Admission, Engine, Finisher, Options, Permit};
use tokio::sync::mpsc;

use crate::world::{
    LEASE, RETENTION, World, ask, ask_with, outcome, paid, pay, permit, policy, queued, replayed,
    settle_down, stored,
};

/// Claims a key in a process that then dies.
async fn abandon(world: &World, ask: &hapax_engine::BeginRequest<'_>) {
    let (engine, wire) = world.process();
    let running = permit(engine.begin(ask).await.unwrap());
    wire.hold();
    std::mem::forget(running);
    std::mem::forget(engine);
}

fn finishing(world: &World) -> (Engine, mpsc::UnboundedReceiver<Recovery>) {
    let (tell, told) = mpsc::unbounded_channel();
    let policy_of = |record: &Record| policy(record.recovery);
    let finisher = Finisher::new(policy_of, move |permit: Permit, recovery| {
        let tell = tell.clone();
        async move {
            assert_eq!(
                permit.record().request().map(|request| &request[..]),
                Some(&b"pay 100"[..])
            );
            permit.settle(paid("finished in the background")).await.unwrap();
            tell.send(recovery).unwrap();
        }
    });
    let options = Options { finisher: Some(finisher), ..Options::default() };
    (world.process_with(options).0, told)
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_must_not_be_followed_leaves_a_doubt() {
    let world = World::new();
    abandon(&world, &ask("k")).await;
    let (engine, _) = world.process();
    tokio::time::sleep(LEASE * 2).await;
    let record = world.record("k").await.unwrap();
    assert!(matches!(record.state, State::InDoubt { doubt: Doubt::OwnerVanished, .. }));
    assert_eq!(engine.stats().swept_in_doubt, 1);
    let begun = engine.begin(&ask("k")).await.unwrap();
    assert!(matches!(begun, Admission::InDoubt { doubt: Doubt::OwnerVanished }));
}

#[tokio::test(start_paused = true)]
async fn an_arrival_finds_the_doubt_before_any_sweep() {
    let world = World::new();
    abandon(&world, &ask("k")).await;
    let (engine, _) = world.process_with(Options { sweep_every: RETENTION, ..Options::default() });
    tokio::time::sleep(LEASE).await;
    let begun = engine.begin(&ask("k")).await.unwrap();
    assert!(matches!(begun, Admission::InDoubt { doubt: Doubt::OwnerVanished }));
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::InDoubt);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_may_be_sent_again_is_given_back() {
    let world = World::new();
    let request = ask_with("k", Recovery::Resend, b"r");
    abandon(&world, &request).await;
    let (engine, _) = world.process();
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::Released);
    assert_eq!(engine.stats().swept_released, 1);
    pay(&engine, &request, "paid").await;
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_operation_is_finished_without_any_client() {
    for recovery in [Recovery::Resend, Recovery::Probe] {
        let world = World::new();
        let request = stored(ask_with("k", recovery, b"pay 100"));
        abandon(&world, &request).await;
        let (engine, mut told) = finishing(&world);
        assert_eq!(told.recv().await, Some(recovery));
        assert_eq!(
            replayed(&engine.begin(&request).await.unwrap()),
            outcome("finished in the background")
        );
        assert_eq!(engine.stats().swept_taken_over, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_queued_operation_is_run_at_once_by_whoever_accepted_it() {
    let world = World::new();
    let (engine, mut told) = finishing(&world);
    let request = queued(ask("k"));
    let begun = engine.begin(&request).await.unwrap();
    assert!(
        matches!(&begun, Admission::Queued(queued) if queued.record().tag() == StateTag::Pending)
    );
    assert_eq!(told.recv().await, Some(Recovery::Resend));
    assert_eq!(
        replayed(&engine.begin(&request).await.unwrap()),
        outcome("finished in the background")
    );
}

#[tokio::test(start_paused = true)]
async fn a_queued_operation_survives_the_process_that_accepted_it() {
    let world = World::new();
    let (accepting, wire) = world.process();
    let begun = accepting.begin(&queued(ask("k"))).await.unwrap();
    assert!(matches!(begun, Admission::Queued(_)));
    wire.hold();
    let begun = world.process().0.begin(&queued(ask("k"))).await.unwrap();
    assert!(matches!(begun, Admission::Busy { .. }));
    let (_engine, mut told) = finishing(&world);
    assert_eq!(told.recv().await, Some(Recovery::Resend));
    assert_eq!(
        world.record("k").await.unwrap().outcome(),
        Some(&outcome("finished in the background"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_queued_operation_nobody_comes_for_fails_when_its_time_is_over() {
    let world = World::new();
    let (engine, _) = world.process();
    engine.begin(&queued(ask("k"))).await.unwrap();
    tokio::time::sleep(RETENTION + Duration::from_secs(60)).await;
    let record = world.record("k").await.unwrap();
    assert_eq!((record.tag(), record.outcome().unwrap().status()), (StateTag::Failed, 504));
    assert_eq!(engine.stats().timed_out, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_past_retention_is_removed_and_nothing_else() {
    let world = World::new();
    let (engine, _) = world.process();
    pay(&engine, &ask("finished"), "paid").await;
    abandon(&world, &ask("in doubt")).await;
    let running = permit(engine.begin(&ask("running")).await.unwrap());
    tokio::time::sleep(RETENTION + Duration::from_secs(60)).await;
    assert_eq!(world.record("finished").await, None);
    assert_eq!(world.record("in doubt").await.unwrap().tag(), StateTag::InDoubt);
    assert_eq!(world.record("running").await.unwrap().tag(), StateTag::Running);
    assert_eq!(engine.stats().purged, 1);
    running.settle(paid("late, but kept for a lease")).await.unwrap();
    assert!(matches!(engine.begin(&ask("running")).await.unwrap(), Admission::Replay(_)));
}

#[tokio::test(start_paused = true)]
async fn two_sweepers_bring_one_transition() {
    let world = World::new();
    let keys: Vec<_> = (0..50).map(|number| format!("k{number}")).collect();
    for key in &keys {
        abandon(&world, &ask(key)).await;
    }
    let (one, _) = world.process();
    let (two, _) = world.process();
    tokio::time::sleep(LEASE * 2).await;
    settle_down().await;
    assert_eq!(one.stats().swept_in_doubt + two.stats().swept_in_doubt, 50);
}
