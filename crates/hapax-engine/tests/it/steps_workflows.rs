//! Whole operations of several effects, for their clients and without them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{AttemptAnswer, Key, Operation, Record, Recovery, Scope, StateTag, Tenant};
use hapax_engine::{
    Engine, Finisher, Options, Permit, Ran, Run, WorkflowError, Workflows, steps::RunError,
};
use tokio::sync::mpsc;

use crate::{
    steps::Ledger,
    world::{LEASE, RETENTION, World, outcome, policy, settle_down},
};

const NAMES: [&str; 4] = ["charge", "record", "publish", "mail"];

/// What a payment meets on its way.
#[derive(Clone, Default)]
struct Trouble {
    /// After this many effects the process hangs for ever.
    hang_after: Arc<Mutex<Option<usize>>>,
    /// How many times a step fails before it works.
    failures_left: Arc<AtomicUsize>,
    panics: Arc<AtomicBool>,
}

fn payments(ledger: &Ledger, trouble: &Trouble) -> Workflows {
    let (ledger, trouble) = (ledger.clone(), trouble.clone());
    Workflows::new().on("POST /payments", policy(Recovery::Hold), move |run| {
        pay(run, ledger.clone(), trouble.clone())
    })
}

async fn pay(run: Run, ledger: Ledger, trouble: Trouble) -> Result<AttemptAnswer, WorkflowError> {
    let mut count = 0;
    for name in NAMES {
        let effect = |key| {
            let (ledger, trouble) = (ledger.clone(), trouble.clone());
            async move {
                let left = trouble.failures_left.load(SeqCst);
                if left > 0 {
                    trouble.failures_left.store(left - 1, SeqCst);
                    return Err("the other side is away");
                }
                assert!(!trouble.panics.swap(false, SeqCst), "the workflow dies");
                let count = ledger.have(name, key).await.unwrap();
                let hangs = trouble.hang_after.lock().unwrap().is_some_and(|after| count > after);
                if hangs {
                    std::future::pending::<()>().await;
                }
                Ok(count)
            }
        };
        count = run.step(name, effect).await?;
    }
    assert_eq!(&run.request()[..], b"pay 100");
    Ok(AttemptAnswer::completed(outcome(&format!("paid after {count}"))))
}

fn operation(key: &str) -> Operation {
    Operation::new(
        Tenant::parse("acme").unwrap(),
        Scope::parse("POST /payments").unwrap(),
        Key::parse(key).unwrap(),
    )
}

fn request() -> Bytes {
    Bytes::from_static(b"pay 100")
}

fn completing(world: &World, workflows: &Workflows) -> Engine {
    let finisher = Some(workflows.finisher());
    world.process_with(Options { finisher, ..Options::default() }).0
}

#[tokio::test(start_paused = true)]
async fn a_workflow_runs_once_and_is_replayed() {
    let (world, ledger) = (World::new(), Ledger::default());
    let workflows = payments(&ledger, &Trouble::default());
    let engine = completing(&world, &workflows);
    let ran = workflows.run(&engine, &operation("k"), request()).await.unwrap();
    assert_eq!(ran, Ran::Answered(AttemptAnswer::completed(outcome("paid after 4"))));
    let again = workflows.run(&engine, &operation("k"), request()).await.unwrap();
    assert_eq!(again, Ran::Replayed(outcome("paid after 4")));
    let other = workflows.run(&engine, &operation("k"), Bytes::from_static(b"pay 1")).await;
    assert!(matches!(other.unwrap(), Ran::Mismatch(_)));
    assert_eq!(ledger.whats(), NAMES);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_workflow_is_finished_without_its_client() {
    for finished in 0..NAMES.len() {
        let (world, ledger, trouble) = (World::new(), Ledger::default(), Trouble::default());
        *trouble.hang_after.lock().unwrap() = Some(finished);
        let workflows = payments(&ledger, &trouble);
        let (dying, wire) = world.process();
        let (client, own) = (dying.clone(), workflows.clone());
        tokio::spawn(async move { own.run(&client, &operation("k"), request()).await });
        settle_down().await;
        wire.hold();
        *trouble.hang_after.lock().unwrap() = None;

        let engine = completing(&world, &workflows);
        let busy = workflows.run(&engine, &operation("k"), request()).await.unwrap();
        assert!(matches!(busy, Ran::Busy { .. }), "{busy:?}");
        tokio::time::sleep(LEASE * 3).await;
        let mut expected: Vec<&str> = NAMES[..=finished].to_vec();
        expected.extend(&NAMES[finished..]);
        assert_eq!(ledger.whats(), expected, "only the step that was cut off is repeated");
        assert_eq!(world.record("k").await.unwrap().tag(), StateTag::Completed);
        assert_eq!(engine.stats().swept_taken_over, 1);
        let ran = workflows.run(&engine, &operation("k"), request()).await.unwrap();
        assert_eq!(ran, Ran::Replayed(outcome("paid after 5")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_and_the_completer_never_both_go_on() {
    for seed in 0..100 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (world, ledger, trouble) = (World::new(), Ledger::default(), Trouble::default());
        let finished = rng.usize(..NAMES.len());
        *trouble.hang_after.lock().unwrap() = Some(finished);
        let workflows = payments(&ledger, &trouble);
        let (dying, wire) = world.process();
        let (client, own) = (dying.clone(), workflows.clone());
        tokio::spawn(async move { own.run(&client, &operation("k"), request()).await });
        settle_down().await;
        wire.hold();
        *trouble.hang_after.lock().unwrap() = None;

        let engines: Vec<_> = (0..3).map(|_| completing(&world, &workflows)).collect();
        let mut clients = Vec::new();
        for engine in engines.iter().cycle().take(9) {
            let (engine, workflows) = (engine.clone(), workflows.clone());
            let mut wait = LEASE - Duration::from_millis(rng.u64(..20));
            clients.push(tokio::spawn(async move {
                loop {
                    tokio::time::sleep(wait).await;
                    wait = Duration::from_millis(3);
                    match workflows.run(&engine, &operation("k"), request()).await.unwrap() {
                        Ran::Busy { .. } | Ran::Later { .. } => {}
                        Ran::Answered(answer) => return answer.outcome,
                        Ran::Replayed(outcome) => return outcome,
                        other => panic!("{other:?}"),
                    }
                }
            }));
        }
        for client in clients {
            assert_eq!(client.await.unwrap(), outcome("paid after 5"), "seed {seed}");
        }
        assert_eq!(ledger.whats().len(), NAMES.len() + 1, "seed {seed}");
        assert_eq!(world.record("k").await.unwrap().fence.get(), 2, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_fails_half_way_goes_on_by_itself() {
    let (world, ledger, trouble) = (World::new(), Ledger::default(), Trouble::default());
    let workflows = payments(&ledger, &trouble);
    let engine = completing(&world, &workflows);
    trouble.failures_left.store(3, SeqCst);
    let ran = workflows.run(&engine, &operation("k"), request()).await.unwrap();
    assert_eq!(ran, Ran::Later { after: Duration::from_secs(1) });
    let busy = workflows.run(&engine, &operation("k"), request()).await.unwrap();
    assert!(matches!(busy, Ran::Busy { .. }), "{busy:?}");
    tokio::time::sleep(LEASE * 4).await;
    assert_eq!(ledger.whats(), NAMES);
    assert_eq!(world.record("k").await.unwrap().fence.get(), 4);
    let ran = workflows.run(&engine, &operation("k"), request()).await.unwrap();
    assert_eq!(ran, Ran::Replayed(outcome("paid after 4")));
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_panics_goes_on_by_itself() {
    let (world, ledger, trouble) = (World::new(), Ledger::default(), Trouble::default());
    let workflows = payments(&ledger, &trouble);
    let engine = completing(&world, &workflows);
    trouble.panics.store(true, SeqCst);
    let ran = workflows.run(&engine, &operation("k"), request()).await.unwrap();
    assert!(matches!(ran, Ran::Later { .. }), "{ran:?}");
    tokio::time::sleep(LEASE).await;
    assert_eq!(ledger.whats(), NAMES);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_never_gets_through_is_in_doubt_when_its_retention_is_over() {
    let (world, ledger, trouble) = (World::new(), Ledger::default(), Trouble::default());
    let workflows = payments(&ledger, &trouble);
    let engine = completing(&world, &workflows);
    trouble.failures_left.store(usize::MAX, SeqCst);
    workflows.run(&engine, &operation("k"), request()).await.unwrap();
    tokio::time::sleep(RETENTION * 2).await;
    let record = world.record("k").await.unwrap();
    assert_eq!(record.tag(), StateTag::InDoubt);
    let attempts = record.fence.get();
    assert!((5..50).contains(&attempts), "pauses grow: {attempts} attempts in an hour");
    trouble.failures_left.store(0, SeqCst);
    let ran = workflows.run(&engine, &operation("k"), request()).await.unwrap();
    assert_eq!(
        ran,
        Ran::Answered(AttemptAnswer::completed(outcome("paid after 4"))),
        "whoever asks goes on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_does_not_stop_its_workflow() {
    let (world, ledger) = (World::new(), Ledger::default());
    let workflows = payments(&ledger, &Trouble::default());
    let (engine, wire) = world.process();
    let (client, own) = (engine.clone(), workflows.clone());
    let caller = tokio::spawn(async move { own.run(&client, &operation("k"), request()).await });
    while ledger.whats().is_empty() {
        tokio::task::yield_now().await;
    }
    wire.hold();
    caller.abort();
    settle_down().await;
    wire.let_go();
    settle_down().await;
    assert_eq!(ledger.whats(), NAMES);
    assert_eq!(world.record("k").await.unwrap().tag(), StateTag::Completed);
}

#[tokio::test(start_paused = true)]
async fn operations_of_other_scopes_are_left_to_others() {
    let (world, ledger) = (World::new(), Ledger::default());
    let workflows = payments(&ledger, &Trouble::default());
    let (dying, wire) = world.process();
    let other = Operation::new(
        Tenant::parse("acme").unwrap(),
        Scope::parse("POST /refunds").unwrap(),
        Key::parse("k").unwrap(),
    );
    let missing = workflows.run(&dying, &other, request()).await;
    assert!(matches!(missing, Err(RunError::NoWorkflow { scope }) if scope == "POST /refunds"));

    let refunds = Workflows::new().on("POST /re*", policy(Recovery::Hold), |_: Run| {
        std::future::pending::<Result<AttemptAnswer, WorkflowError>>()
    });
    let (client, own) = (dying.clone(), refunds.clone());
    let refund = other.clone();
    tokio::spawn(async move { own.run(&client, &refund, request()).await });
    settle_down().await;
    wire.hold();

    let unaware = completing(&world, &workflows);
    tokio::time::sleep(LEASE * 4).await;
    assert_eq!(world.record_of(&other).await.unwrap().tag(), StateTag::Running);
    assert_eq!(unaware.stats().swept_taken_over, 0);

    let (tell, mut told) = mpsc::unbounded_channel();
    let elsewhere = Finisher::new(
        |record: &Record| policy(record.recovery),
        move |permit: Permit, _| {
            let tell = tell.clone();
            async move {
                permit.settle(crate::world::paid("refunded")).await.unwrap();
                tell.send(()).unwrap();
            }
        },
    );
    let finisher = Some(workflows.finisher().or(elsewhere));
    let (_aware, _) = world.process_with(Options { finisher, ..Options::default() });
    assert_eq!(told.recv().await, Some(()));
    assert_eq!(world.record_of(&other).await.unwrap().outcome(), Some(&outcome("refunded")));
}
