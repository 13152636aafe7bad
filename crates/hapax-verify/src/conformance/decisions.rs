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
        Caller, LEASE, Scene, WINDOW, complete, done, enter, load, outcome, purge_all, record, win,
    },
};

const TOMBSTONE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const RECOVERIES: [Recovery; 3] = [Recovery::Resend, Recovery::Probe, Recovery::Hold];

/// What an arrival can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
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

impl Stage {
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
        let scene = Scene::<B>::new().await;
        for recovery in RECOVERIES {
            for (body, same) in [("{\"amount\":100}", true), ("{\"amount\":999}", false)] {
                let first = Caller::new(&format!("{self:?} {recovery:?} {same}"));
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

/// Somebody at the door of a key that is at a [`Stage`].
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
enum Told {
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
    let fresh = |_| Told::Execute { fence: 1, over: "nothing" };
    check::<B>(Stage::Absent, fresh, fresh).await;
}

/// A record past its retention executes as new, with the next fence.
pub async fn an_expired_record_executes_as_new<B: Backend>() {
    let anew = |_| Told::Execute { fence: 2, over: "spent" };
    check::<B>(Stage::Expired, anew, anew).await;
}

/// A pending operation is busy, before and after a worker should have come.
pub async fn a_pending_operation_is_busy<B: Backend>() {
    check::<B>(Stage::Pending, |_| Told::Busy, mismatch).await;
    check::<B>(Stage::PickUpOver, |_| Told::Busy, mismatch).await;
}

/// A running operation is busy while its lease lives.
pub async fn a_live_lease_is_busy<B: Backend>() {
    check::<B>(Stage::Running, |_| Told::Busy, mismatch).await;
}

/// A lease that is over is followed or given up, as the first owner was told.
pub async fn a_lease_that_is_over_is_followed_or_given_up<B: Backend>() {
    let same = |recovery| match recovery {
        Recovery::Resend | Recovery::Probe => Told::TakeOver { fence: 2, recovery },
        Recovery::Hold => Told::GiveUp,
    };
    check::<B>(Stage::LeaseOver, same, mismatch).await;
}

/// A completed operation is replayed.
pub async fn a_completed_operation_is_replayed<B: Backend>() {
    check::<B>(Stage::Completed, |_| Told::Replay(outcome(201, "done")), mismatch).await;
}

/// A failed operation is replayed.
pub async fn a_failed_operation_is_replayed<B: Backend>() {
    check::<B>(Stage::Failed, |_| Told::Replay(outcome(402, "no funds")), mismatch).await;
}

/// An operation in doubt is followed where that is allowed, and stays in doubt where it is not.
pub async fn an_operation_in_doubt_is_followed_or_stays_so<B: Backend>() {
    let same = |recovery| match recovery {
        Recovery::Resend | Recovery::Probe => Told::TakeOver { fence: 2, recovery },
        Recovery::Hold => Told::InDoubt(Doubt::Unanswered),
    };
    check::<B>(Stage::InDoubt, same, mismatch).await;
}

/// A released operation executes again, for the same request only.
pub async fn a_released_operation_executes_again<B: Backend>() {
    let anew = |_| Told::Execute { fence: 2, over: "spent" };
    check::<B>(Stage::Released, anew, mismatch).await;
}

/// Past retention a key with a tombstone is gone, purged or not.
pub async fn a_key_with_a_tombstone_is_gone<B: Backend>() {
    check::<B>(Stage::PastRetention, |_| Told::Gone, |_| Told::Gone).await;
    check::<B>(Stage::Buried, |_| Told::Gone, |_| Told::Gone).await;
}

/// A tombstone that is over executes as new.
pub async fn a_tombstone_that_is_over_executes_as_new<B: Backend>() {
    let anew = |_| Told::Execute { fence: 2, over: "spent" };
    check::<B>(Stage::Forgotten, anew, anew).await;
}

fn mismatch(_: Recovery) -> Told {
    Told::Mismatch(vec![Part::Body])
}

/// Compares what arrivals at this stage are told. Where one is told to claim, that claim must be
/// won.
async fn check<B: Backend>(
    stage: Stage,
    same: impl Fn(Recovery) -> Told,
    different: impl Fn(Recovery) -> Told,
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
                assert_eq!(told(&decision, found.as_deref()), Told::Busy);
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
async fn bring<B: Backend>(scene: &Scene<B>, caller: &Caller, stage: Stage) {
    let (store, first) = (&scene.store, Fence::FIRST);
    match stage {
        Stage::Absent => assert_eq!(record(store, caller.id()).await, None),
        Stage::Pending => _ = enter(store, &caller.clone().queueing(b"POST")).await,
        Stage::PickUpOver => {
            enter(store, &caller.clone().queueing(b"POST")).await;
            scene.pass(LEASE).await;
        }
        Stage::Running => _ = enter(store, caller).await,
        Stage::LeaseOver => {
            enter(store, caller).await;
            scene.pass(LEASE).await;
        }
        Stage::Completed => _ = complete(store, caller, "done").await,
        Stage::Failed => {
            enter(store, caller).await;
            done(store, caller.answers(first, outcome(402, "no funds"))).await;
        }
        Stage::InDoubt => {
            enter(store, caller).await;
            done(store, caller.hears_nothing(first)).await;
        }
        Stage::Released => {
            enter(store, caller).await;
            done(store, caller.sends_nothing(first)).await;
        }
        Stage::Expired => {
            complete(store, caller, "done").await;
            scene.pass(WINDOW).await;
        }
        Stage::PastRetention => {
            complete(store, &caller.clone().burying(TOMBSTONE), "done").await;
            scene.pass(WINDOW).await;
        }
        Stage::Buried => {
            complete(store, &caller.clone().burying(TOMBSTONE), "done").await;
            scene.pass(WINDOW).await;
            assert_eq!(purge_all(store).await.buried, 1);
        }
        Stage::Forgotten => {
            complete(store, &caller.clone().burying(TOMBSTONE), "done").await;
            scene.pass(WINDOW + TOMBSTONE).await;
        }
    }
}

fn told(decision: &Decision, found: Option<&Record>) -> Told {
    match decision {
        Decision::Execute(claim) => {
            let over = match claim.over {
                Over::Nothing => "nothing",
                Over::Spent(_) => "spent",
                Over::Abandoned(_) => "abandoned",
            };
            Told::Execute { fence: claim.fence.get(), over }
        }
        Decision::TakeOver { claim, recovery, quiet_from } => {
            assert!(matches!(claim.over, Over::Abandoned(_)));
            assert!(*quiet_from > Timestamp::ZERO);
            Told::TakeOver { fence: claim.fence.get(), recovery: *recovery }
        }
        Decision::GiveUp => Told::GiveUp,
        Decision::Busy { until } => {
            assert!(*until > Timestamp::ZERO);
            Told::Busy
        }
        Decision::Replay => {
            let outcome =
                found.and_then(Record::outcome).expect("only what is finished is replayed");
            Told::Replay(outcome.clone())
        }
        Decision::InDoubt { doubt } => Told::InDoubt(*doubt),
        Decision::Mismatch(difference) => Told::Mismatch(difference.parts().collect()),
        Decision::Gone { since } => {
            assert!(*since > Timestamp::ZERO);
            Told::Gone
        }
    }
}
