//! The decision table, cell by cell: what an arrival is told about what the store really holds.

use std::time::Duration;

use hapax_core::{
    Arrival, Decision, Doubt, Fence, Outcome, Part, Policy, Record, Recovery, Store, Timestamp,
    decide,
    store::{Loaded, Over},
};

use super::{
    Backend,
    scene::{
        LEASE, ScenarioCaller, StoreScene, WINDOW, complete, done, enter, load, outcome, purge_all,
        record, win,
    },
};

const TOMBSTONE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const RECOVERIES: [Recovery; 3] = [Recovery::Resend, Recovery::Probe, Recovery::Hold];

/// What an arrival can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalStage {
    /// Nothing.
    Absent,
    /// Accepted for later.
    Pending,
    /// Accepted for later, and no worker came in time.
    PickUpOver,
    /// An owner at work.
    Running,
    /// An owner whose lease is over.
    LeaseOver,
    /// An outcome.
    Completed,
    /// A terminal error.
    Failed,
    /// A request that was not answered.
    InDoubt,
    /// Given back.
    Released,
    /// An outcome past its retention.
    Expired,
    /// An outcome past its retention, with a tombstone that no purge has made yet.
    PastRetention,
    /// A tombstone.
    Buried,
    /// A tombstone that is over.
    Forgotten,
}

impl ArrivalStage {
    /// Every stage.
    pub const ALL: [Self; 13] = [
        Self::Absent,
        Self::Pending,
        Self::PickUpOver,
        Self::Running,
        Self::LeaseOver,
        Self::Completed,
        Self::Failed,
        Self::InDoubt,
        Self::Released,
        Self::Expired,
        Self::PastRetention,
        Self::Buried,
        Self::Forgotten,
    ];

    /// Brings keys to the stage, one for each recovery and for the same and for another request, and
    /// lets somebody call on each.
    pub async fn call_on<B: Backend>(self, visit: impl AsyncFn(Visit<'_, B>)) {
        let scene = StoreScene::<B>::new().await;
        for recovery in RECOVERIES {
            for (body, same) in [("{\"amount\":100}", true), ("{\"amount\":999}", false)] {
                let first = ScenarioCaller::new(&format!("{self:?} {recovery:?} {same}"));
                let first = first.recovering(recovery).keeping(b"POST");
                bring(&scene, &first, self).await;
                let second = first.owner(2).saying(body);
                let (backend, store) = (&scene.backend, &scene.store);
                let (arrival, policy) = (second.arrival(store.salt()), second.policy());
                visit(Visit { backend, store, recovery, same, body, arrival, policy }).await;
            }
        }
    }
}

/// Somebody at the door of a key that is at an [`ArrivalStage`].
#[derive(Debug)]
pub struct Visit<'a, B: Backend> {
    /// The database.
    pub backend: &'a B,
    /// The store that brought the key to its stage.
    pub store: &'a B::Store,
    /// What the first owner was told about recovery.
    pub recovery: Recovery,
    /// Whether it is the request that the key was first used for.
    pub same: bool,
    /// The body of the request; its other parts are empty.
    pub body: &'static str,
    /// Who asks for what.
    pub arrival: Arrival,
    /// How it is treated.
    pub policy: Policy,
}

/// What an arrival is told, without what differs from run to run.
#[derive(Debug, PartialEq, Eq)]
enum ArrivalAnswer {
    Execute { fence: i64, over: &'static str },
    TakeOver { fence: i64, recovery: Recovery },
    GiveUp,
    Busy,
    Replay(Outcome),
    InDoubt(Doubt),
    Mismatch(Vec<Part>),
    Gone,
}

/// An absent key executes.
pub async fn an_absent_key_executes<B: Backend>() {
    let fresh = |_| ArrivalAnswer::Execute { fence: 1, over: "nothing" };
    check::<B>(ArrivalStage::Absent, fresh, fresh).await;
}

/// A record past its retention executes as new, with the next fence.
pub async fn an_expired_record_executes_as_new<B: Backend>() {
    let anew = |_| ArrivalAnswer::Execute { fence: 2, over: "spent" };
    check::<B>(ArrivalStage::Expired, anew, anew).await;
}

/// A pending operation is busy, before and after a worker should have come.
pub async fn a_pending_operation_is_busy<B: Backend>() {
    check::<B>(ArrivalStage::Pending, |_| ArrivalAnswer::Busy, mismatch).await;
    check::<B>(ArrivalStage::PickUpOver, |_| ArrivalAnswer::Busy, mismatch).await;
}

/// A running operation is busy while its lease lives.
pub async fn a_live_lease_is_busy<B: Backend>() {
    check::<B>(ArrivalStage::Running, |_| ArrivalAnswer::Busy, mismatch).await;
}

/// A lease that is over is followed or given up, as the first owner was told.
pub async fn a_lease_that_is_over_is_followed_or_given_up<B: Backend>() {
    let same = |recovery| match recovery {
        Recovery::Resend | Recovery::Probe => ArrivalAnswer::TakeOver { fence: 2, recovery },
        Recovery::Hold => ArrivalAnswer::GiveUp,
    };
    check::<B>(ArrivalStage::LeaseOver, same, mismatch).await;
}

/// A completed operation is replayed.
pub async fn a_completed_operation_is_replayed<B: Backend>() {
    check::<B>(ArrivalStage::Completed, |_| ArrivalAnswer::Replay(outcome(201, "done")), mismatch)
        .await;
}

/// A failed operation is replayed.
pub async fn a_failed_operation_is_replayed<B: Backend>() {
    check::<B>(ArrivalStage::Failed, |_| ArrivalAnswer::Replay(outcome(402, "no funds")), mismatch)
        .await;
}

/// An operation in doubt is followed where that is allowed, and stays in doubt where it is not.
pub async fn an_operation_in_doubt_is_followed_or_stays_so<B: Backend>() {
    let same = |recovery| match recovery {
        Recovery::Resend | Recovery::Probe => ArrivalAnswer::TakeOver { fence: 2, recovery },
        Recovery::Hold => ArrivalAnswer::InDoubt(Doubt::Unanswered),
    };
    check::<B>(ArrivalStage::InDoubt, same, mismatch).await;
}

/// A released operation executes again, for the same request only.
pub async fn a_released_operation_executes_again<B: Backend>() {
    let anew = |_| ArrivalAnswer::Execute { fence: 2, over: "spent" };
    check::<B>(ArrivalStage::Released, anew, mismatch).await;
}

/// Past retention a key with a tombstone is gone, purged or not.
pub async fn a_key_with_a_tombstone_is_gone<B: Backend>() {
    check::<B>(ArrivalStage::PastRetention, |_| ArrivalAnswer::Gone, |_| ArrivalAnswer::Gone).await;
    check::<B>(ArrivalStage::Buried, |_| ArrivalAnswer::Gone, |_| ArrivalAnswer::Gone).await;
}

/// A tombstone that is over executes as new.
pub async fn a_tombstone_that_is_over_executes_as_new<B: Backend>() {
    let anew = |_| ArrivalAnswer::Execute { fence: 2, over: "spent" };
    check::<B>(ArrivalStage::Forgotten, anew, anew).await;
}

fn mismatch(_: Recovery) -> ArrivalAnswer {
    ArrivalAnswer::Mismatch(vec![Part::Body])
}

/// Compares what arrivals at this stage are told. Where one is told to claim, that claim must be
/// won.
async fn check<B: Backend>(
    stage: ArrivalStage,
    same: impl Fn(Recovery) -> ArrivalAnswer,
    different: impl Fn(Recovery) -> ArrivalAnswer,
) {
    let compare = async |visit: Visit<'_, B>| {
        let recovery = visit.recovery;
        let expected = if visit.same { same(recovery) } else { different(recovery) };
        let (decision, found) = arrive(&visit).await;
        assert_eq!(told(&decision, found.as_deref()), expected, "at {stage:?} under {recovery:?}");
        match decision {
            Decision::Execute(claim) | Decision::TakeOver { claim, .. } => {
                win(visit.store, claim).await;
                let (decision, found) = arrive(&visit).await;
                assert_eq!(told(&decision, found.as_deref()), ArrivalAnswer::Busy);
            }
            Decision::GiveUp
            | Decision::Busy { .. }
            | Decision::Replay
            | Decision::InDoubt { .. }
            | Decision::Mismatch(_)
            | Decision::Gone { .. } => {}
        }
    };
    stage.call_on(compare).await;
}

async fn arrive<B: Backend>(visit: &Visit<'_, B>) -> (Decision, Option<Box<Record>>) {
    let Loaded { now, record } = load(visit.store, visit.arrival.operation.id()).await.unwrap();
    (decide(now, &visit.arrival, record.as_deref(), &visit.policy), record)
}

/// Leaves the caller's key at this stage, by nothing but what owners, purgers and time do.
async fn bring<B: Backend>(scene: &StoreScene<B>, caller: &ScenarioCaller, stage: ArrivalStage) {
    let (store, first) = (&scene.store, Fence::FIRST);
    match stage {
        ArrivalStage::Absent => assert_eq!(record(store, caller.id()).await, None),
        ArrivalStage::Pending => _ = enter(store, &caller.clone().queueing(b"POST")).await,
        ArrivalStage::PickUpOver => {
            enter(store, &caller.clone().queueing(b"POST")).await;
            scene.pass(LEASE).await;
        }
        ArrivalStage::Running => _ = enter(store, caller).await,
        ArrivalStage::LeaseOver => {
            enter(store, caller).await;
            scene.pass(LEASE).await;
        }
        ArrivalStage::Completed => _ = complete(store, caller, "done").await,
        ArrivalStage::Failed => {
            enter(store, caller).await;
            done(store, caller.refuses(first, outcome(402, "no funds"))).await;
        }
        ArrivalStage::InDoubt => {
            enter(store, caller).await;
            done(store, caller.hears_nothing(first)).await;
        }
        ArrivalStage::Released => {
            enter(store, caller).await;
            done(store, caller.sends_nothing(first)).await;
        }
        ArrivalStage::Expired => {
            complete(store, caller, "done").await;
            scene.pass(WINDOW).await;
        }
        ArrivalStage::PastRetention => {
            complete(store, &caller.clone().burying(TOMBSTONE), "done").await;
            scene.pass(WINDOW).await;
        }
        ArrivalStage::Buried => {
            complete(store, &caller.clone().burying(TOMBSTONE), "done").await;
            scene.pass(WINDOW).await;
            assert_eq!(purge_all(store).await.buried, 1);
        }
        ArrivalStage::Forgotten => {
            complete(store, &caller.clone().burying(TOMBSTONE), "done").await;
            scene.pass(WINDOW + TOMBSTONE).await;
        }
    }
}

fn told(decision: &Decision, found: Option<&Record>) -> ArrivalAnswer {
    match decision {
        Decision::Execute(claim) => {
            let over = match claim.over {
                Over::Nothing => "nothing",
                Over::Spent(_) => "spent",
                Over::Abandoned(_) => "abandoned",
            };
            ArrivalAnswer::Execute { fence: claim.fence.get(), over }
        }
        Decision::TakeOver { claim, recovery, quiet_from } => {
            assert!(matches!(claim.over, Over::Abandoned(_)));
            assert!(*quiet_from > Timestamp::ZERO);
            ArrivalAnswer::TakeOver { fence: claim.fence.get(), recovery: *recovery }
        }
        Decision::GiveUp => ArrivalAnswer::GiveUp,
        Decision::Busy { until } => {
            assert!(*until > Timestamp::ZERO);
            ArrivalAnswer::Busy
        }
        Decision::Replay => {
            let outcome =
                found.and_then(Record::outcome).expect("only what is finished is replayed");
            ArrivalAnswer::Replay(outcome.clone())
        }
        Decision::InDoubt { doubt } => ArrivalAnswer::InDoubt(*doubt),
        Decision::Mismatch(difference) => ArrivalAnswer::Mismatch(difference.parts().collect()),
        Decision::Gone { since } => {
            assert!(*since > Timestamp::ZERO);
            ArrivalAnswer::Gone
        }
    }
}
