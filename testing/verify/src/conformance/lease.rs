//! Leases: renewed by their owner, counted by the store's clock, found when they are over.

use std::time::Duration;

use hapax_core::{
    Decision, Doubt, Fence, OperationId, Owner, Record, Recovery, State, StateTag, Store, Sweep,
    store::{Claim, Over, Renew, Settlement, Write, Written},
    sweep,
};

use super::{
    Backend,
    scene::{
        LEASE, ROUNDS_MAX, ScenarioCaller, StoreScene, all_overdue, arrive, complete, done, enter,
        give_up, lost, onlook, outcome, stored, win, write,
    },
};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A renewal counts the lease anew from its write, and changes nothing else.
pub async fn a_renewal_counts_the_lease_anew<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("alive").keeping(b"kept");
    let fence = enter(&scene.store, &caller).await;
    scene.pass(LEASE / 2).await;
    let before = stored(&scene.store, caller.id()).await;
    let renewal = Write::Renew(caller.renewal(fence));
    let Written::Done { now } = write(&scene.store, renewal).await else {
        panic!("its owner must be able to renew it");
    };
    let after = stored(&scene.store, caller.id()).await;
    assert_eq!(after.until(), now.plus(LEASE));
    assert!(after.until() >= before.until().plus(LEASE / 2));
    assert_eq!(Record { state: before.state.clone(), ..after }, before);
    scene.pass(LEASE / 2 + LEASE / 4).await;
    assert!(matches!(arrive(&scene.store, &caller.owner(2)).await, Decision::Busy { .. }));
}

/// A lease that is over can still be renewed while nobody has followed.
pub async fn a_late_owner_nobody_followed_renews<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("late");
    let fence = enter(&scene.store, &caller).await;
    scene.pass(2 * LEASE).await;
    let renewed = write(&scene.store, Write::Renew(caller.renewal(fence))).await;
    assert!(matches!(renewed, Written::Done { .. }), "{renewed:?}");
}

/// Nobody renews what is not running under its fence and name.
pub async fn nobody_renews_what_it_does_not_run<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let (store, first) = (&scene.store, Fence::FIRST);
    let [running, completed, doubted, absent] =
        ["running", "completed", "doubted", "absent"].map(ScenarioCaller::new);
    let pending = ScenarioCaller::new("pending").queueing(b"later");
    enter(store, &running).await;
    enter(store, &pending).await;
    complete(store, &completed, "done").await;
    enter(store, &doubted).await;
    done(store, doubted.hears_nothing(first)).await;
    let refused = [
        Renew { fence: first.next(), ..running.renewal(first) },
        Renew { owner: Owner(2), ..running.renewal(first) },
        pending.renewal(first),
        completed.renewal(first),
        doubted.renewal(first),
        absent.renewal(first),
    ];
    for renew in refused {
        let renewed = write(store, Write::Renew(renew)).await;
        assert!(matches!(renewed, Written::Refused { .. }), "{renewed:?}");
    }
}

/// A renewed lease defeats an onlooker that saw the old one.
pub async fn a_renewed_lease_defeats_an_onlooker<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("renewed");
    let fence = enter(&scene.store, &caller).await;
    scene.pass(LEASE).await;
    let [seen] = &all_overdue(&scene.store).await[..] else { panic!("one record is overdue") };
    write(&scene.store, Write::Renew(caller.renewal(fence))).await;
    lost(&scene.store, give_up(seen)).await;
    done(&scene.store, caller.answers(fence, outcome(200, "alive"))).await;
}

/// Overdue is what is running or pending past its time, and nothing else.
pub async fn only_what_is_past_its_time_is_overdue<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let (store, first) = (&scene.store, Fence::FIRST);
    let running = ScenarioCaller::new("running").keeping(b"kept");
    let pending = ScenarioCaller::new("pending").queueing(b"kept");
    let [renewed, fresh, completed, doubted, released] =
        ["renewed", "fresh", "completed", "doubted", "released"].map(ScenarioCaller::new);
    for caller in [&running, &pending, &renewed, &doubted, &released] {
        enter(store, caller).await;
    }
    complete(store, &completed, "done").await;
    done(store, doubted.hears_nothing(first)).await;
    done(store, released.sends_nothing(first)).await;
    assert_eq!(ids(&all_overdue(store).await), []);
    scene.pass(LEASE).await;
    write(store, Write::Renew(renewed.renewal(first))).await;
    enter(store, &fresh).await;
    let overdue = all_overdue(store).await;
    assert_eq!(ids(&overdue), sorted([running.id(), pending.id()]));
    for record in overdue {
        assert_eq!(record, stored(store, record.operation.id()).await);
    }
}

/// A call for what is overdue answers no more than it was asked for, and misses nothing for good.
pub async fn overdue_records_come_in_bounded_calls<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let callers: Vec<_> = (0..20).map(|at| ScenarioCaller::new(&format!("due {at}"))).collect();
    for caller in &callers {
        enter(&scene.store, caller).await;
    }
    scene.pass(LEASE).await;
    let mut given_up = 0;
    for _ in 0..ROUNDS_MAX {
        let found = scene.store.overdue(3).await.unwrap();
        assert!(found.len() <= 3);
        for record in &found {
            done(&scene.store, give_up(record)).await;
            given_up += 1;
        }
    }
    assert_eq!(given_up, callers.len());
}

/// Leases follow the store's clock, wherever it jumps.
pub async fn leases_follow_the_stores_clock<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("clock").recovering(Recovery::Resend);
    enter(&scene.store, &caller).await;
    let second = caller.clone().owner(2);
    scene.pass(3 * HOUR).await;
    assert!(matches!(arrive(&scene.store, &second).await, Decision::TakeOver { .. }));
    assert_eq!(ids(&all_overdue(&scene.store).await), [caller.id()]);
    scene.turn_back(3 * HOUR).await;
    assert!(matches!(arrive(&scene.store, &second).await, Decision::Busy { .. }));
    assert_eq!(ids(&all_overdue(&scene.store).await), []);
    scene.pass(3 * HOUR).await;
    assert_eq!(enter(&scene.store, &second).await, Fence::FIRST.next());
}

/// A record claimed after the clock was set back is found when its lease is over.
pub async fn records_from_before_a_clock_step_are_found<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    enter(&scene.store, &ScenarioCaller::new("ahead")).await;
    scene.pass(LEASE).await;
    for record in all_overdue(&scene.store).await {
        done(&scene.store, give_up(&record)).await;
    }
    assert_eq!(ids(&all_overdue(&scene.store).await), []);
    scene.turn_back(3 * HOUR).await;
    let behind = ScenarioCaller::new("behind");
    enter(&scene.store, &behind).await;
    scene.pass(LEASE).await;
    assert_eq!(ids(&all_overdue(&scene.store).await), [behind.id()]);
}

/// A lease that ends later than any can is looked at, or its key would be busy until the clock is
/// there again.
pub async fn a_lease_given_by_a_clock_that_was_ahead_is_overdue<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    scene.pass(48 * HOUR).await;
    let [ahead, waiting] = ["ahead", "waiting"].map(ScenarioCaller::new);
    let waiting = waiting.queueing(b"later");
    enter(&scene.store, &ahead).await;
    enter(&scene.store, &waiting).await;
    scene.turn_back(48 * HOUR).await;
    let now = ScenarioCaller::new("now");
    enter(&scene.store, &now).await;
    assert_eq!(ids(&all_overdue(&scene.store).await), sorted([ahead.id(), waiting.id()]));
    done(&scene.store, ahead.answers(Fence::FIRST, outcome(201, "late"))).await;
    assert_eq!(ids(&all_overdue(&scene.store).await), [waiting.id()]);
}

/// A sweeper does with each overdue record what its recovery says.
pub async fn a_sweeper_does_what_the_recovery_says<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let hold = ScenarioCaller::new("hold").keeping(b"kept");
    let resend = ScenarioCaller::new("resend").recovering(Recovery::Resend);
    let resumed = ScenarioCaller::new("resumed").recovering(Recovery::Resend).keeping(b"kept");
    let pending = ScenarioCaller::new("pending").queueing(b"kept");
    for caller in [&hold, &resend, &resumed, &pending] {
        enter(&scene.store, caller).await;
    }
    scene.pass(LEASE).await;
    for record in all_overdue(&scene.store).await {
        let worker = ScenarioCaller::new("worker").of(record.operation.clone()).owner(7);
        match sweep(&record, true) {
            Sweep::TakeOver(_) if record.tag() == StateTag::Pending => {
                let claim = worker.first_claim(scene.store.salt());
                let over = Over::Abandoned(record.stamp());
                win(&scene.store, Claim { over, fence: record.fence.next(), ..claim }).await;
            }
            Sweep::TakeOver(_) => _ = enter(&scene.store, &worker).await,
            Sweep::Release => done(&scene.store, onlook(&record, Settlement::Released)).await,
            Sweep::GiveUp => done(&scene.store, give_up(&record)).await,
            Sweep::Leave => panic!("something can be done about {record:?}"),
        }
    }
    let held = stored(&scene.store, hold.id()).await;
    let State::InDoubt { doubt, .. } = held.state else { panic!("must be in doubt") };
    assert_eq!(doubt, Doubt::OwnerVanished);
    assert_eq!(stored(&scene.store, resend.id()).await.tag(), StateTag::Released);
    for caller in [resumed, pending] {
        let found = stored(&scene.store, caller.id()).await;
        assert_eq!((found.tag(), found.owner), (StateTag::Running, Owner(7)));
        assert_eq!(found.request().map(AsRef::as_ref), Some(&b"kept"[..]));
    }
    assert_eq!(ids(&all_overdue(&scene.store).await), []);
}

fn ids(records: &[Record]) -> Vec<OperationId> {
    sorted(records.iter().map(|record| record.operation.id()))
}

fn sorted(ids: impl IntoIterator<Item = OperationId>) -> Vec<OperationId> {
    let mut ids: Vec<_> = ids.into_iter().collect();
    ids.sort_unstable();
    ids
}
