//! Ends of attempts: written if the attempt is still the one that counts.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Body, Doubt, Fence, Header, Outcome, Owner, Recovery, RetainFrom, Stamp, State, StateTag,
    Timestamp,
    store::{By, Settle, Settlement},
};

use super::{
    Backend,
    scene::{
        LEASE, ScenarioCaller, StoreScene, WINDOW, complete, done, enter, give_up, lost, onlook,
        outcome, purge_all, stored,
    },
};

/// Every way to end an attempt is stored, from running and from pending.
pub async fn every_settlement_is_stored<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let settlements = [
        Settlement::Completed(outcome(200, "yes")),
        Settlement::Failed(outcome(400, "no")),
        Settlement::Released,
        Settlement::Declined,
        Settlement::InDoubt(Doubt::Unanswered),
        Settlement::InDoubt(Doubt::Interrupted),
        Settlement::InDoubt(Doubt::OwnerVanished),
    ];
    for (at, to) in settlements.into_iter().enumerate() {
        let running = ScenarioCaller::new(&format!("running {at}")).keeping(b"kept");
        let pending = ScenarioCaller::new(&format!("pending {at}")).queueing(b"kept");
        for caller in [running, pending] {
            let fence = enter(&scene.store, &caller).await;
            let by = By::Owner { fence, owner: caller.owner };
            done(&scene.store, Settle { id: caller.id(), by, to: to.clone(), keep: LEASE }).await;
            let found = stored(&scene.store, caller.id()).await;
            let request = Some(Bytes::from_static(b"kept"));
            let expected = match to.clone() {
                Settlement::Completed(outcome) => State::Completed { outcome },
                Settlement::Failed(outcome) => State::Failed { outcome },
                Settlement::Released | Settlement::Declined => State::Released,
                Settlement::InDoubt(doubt) => State::InDoubt { doubt, request },
            };
            assert_eq!(found.state, expected);
        }
    }
}

/// An outcome comes back byte for byte, whatever it holds.
pub async fn an_outcome_comes_back_byte_for_byte<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let every_byte: Bytes = (0..=255).collect();
    let headers = vec![
        header("x-bytes", every_byte.clone()),
        header("set-cookie", Bytes::from_static(b"a=1")),
        header("set-cookie", Bytes::from_static(b"b=\xff\x00")),
        header("X-Empty", Bytes::new()),
    ];
    let mebibyte: Bytes =
        (0..1 << 20).map(|at: u32| at.wrapping_mul(31).to_le_bytes()[1]).collect();
    let outcomes = [
        Outcome::bare(204),
        Outcome::bare(u16::MAX),
        Outcome::new(200, headers, Body::Kept(every_byte)).unwrap(),
        Outcome::new(200, Vec::new(), Body::Kept(mebibyte)).unwrap(),
        Outcome::new(200, Vec::new(), Body::NotKept { len: 0 }).unwrap(),
        Outcome::new(200, Vec::new(), Body::NotKept { len: u64::MAX }).unwrap(),
    ];
    let other = scene.open().await;
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let caller = ScenarioCaller::new(&format!("bytes {at}"));
        let fence = enter(&scene.store, &caller).await;
        let by = By::Owner { fence, owner: caller.owner };
        let to = Settlement::Completed(outcome.clone());
        done(&scene.store, Settle { id: caller.id(), by, to, keep: LEASE }).await;
        let found = stored(&other, caller.id()).await;
        assert!(found.outcome() == Some(&outcome), "outcome {at} was changed");
    }
}

/// An attempt that was followed changes nothing any more.
pub async fn a_stale_owner_changes_nothing<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let first = ScenarioCaller::new("stale").recovering(Recovery::Resend);
    let stale = enter(&scene.store, &first).await;
    scene.pass(LEASE).await;
    let second = first.clone().owner(2);
    let current = enter(&scene.store, &second).await;
    for caller in [&first, &second] {
        lost(&scene.store, caller.answers(stale, outcome(200, "stale"))).await;
    }
    lost(&scene.store, first.answers(current, outcome(200, "not the owner"))).await;
    lost(&scene.store, second.answers(current.next(), outcome(200, "from the future"))).await;
    done(&scene.store, second.answers(current, outcome(200, "current"))).await;
    lost(&scene.store, first.answers(stale, outcome(200, "stale"))).await;
    let found = stored(&scene.store, first.id()).await;
    assert_eq!(found.outcome(), Some(&outcome(200, "current")));
}

/// A finished record never changes, not even on its owner's word or an onlooker's exact stamp.
pub async fn a_finished_record_never_changes<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let [completed, failed, released] =
        ["completed", "failed", "released"].map(ScenarioCaller::new);
    let fence = Fence::FIRST;
    let ends = [
        completed.answers(fence, outcome(200, "yes")),
        failed.refuses(fence, outcome(404, "no")),
        released.sends_nothing(fence),
    ];
    for (caller, end) in [completed, failed, released].into_iter().zip(ends) {
        enter(&scene.store, &caller).await;
        done(&scene.store, end.clone()).await;
        let found = stored(&scene.store, caller.id()).await;
        lost(&scene.store, end).await;
        lost(&scene.store, caller.answers(fence, outcome(200, "other"))).await;
        lost(&scene.store, caller.hears_nothing(fence)).await;
        lost(&scene.store, give_up(&found)).await;
        lost(&scene.store, onlook(&found, Settlement::Released)).await;
        assert_eq!(stored(&scene.store, caller.id()).await, found);
    }
}

/// A late owner nobody has followed brings the truth and ends the doubt.
pub async fn a_late_owner_nobody_followed_ends_the_doubt<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("late").keeping(b"kept");
    let fence = enter(&scene.store, &caller).await;
    scene.pass(LEASE).await;
    let found = stored(&scene.store, caller.id()).await;
    done(&scene.store, give_up(&found)).await;
    done(&scene.store, caller.answers(fence, outcome(200, "late"))).await;
    let found = stored(&scene.store, caller.id()).await;
    assert_eq!(found.outcome(), Some(&outcome(200, "late")));
}

/// A late owner that was followed has no say, in doubt or not.
pub async fn a_late_owner_that_was_followed_has_no_say<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let first = ScenarioCaller::new("followed").recovering(Recovery::Resend);
    let stale = enter(&scene.store, &first).await;
    scene.pass(LEASE).await;
    let second = first.clone().owner(2);
    let current = enter(&scene.store, &second).await;
    done(&scene.store, second.hears_nothing(current)).await;
    lost(&scene.store, first.answers(stale, outcome(200, "late"))).await;
    assert_eq!(stored(&scene.store, first.id()).await.tag(), StateTag::InDoubt);
}

/// An owner that slept through purge and a new claim is refused, though its fence is the same.
pub async fn an_owner_that_slept_through_a_whole_life_is_refused<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let sleeper = ScenarioCaller::new("slept").owner(1);
    let fence = enter(&scene.store, &sleeper).await;
    let found = stored(&scene.store, sleeper.id()).await;
    done(&scene.store, onlook(&found, Settlement::Released)).await;
    scene.pass(WINDOW).await;
    assert_eq!(purge_all(&scene.store).await.deleted, 1);
    let next = ScenarioCaller::new("slept").owner(2);
    assert_eq!(enter(&scene.store, &next).await, fence, "fences start anew after a purge");
    lost(&scene.store, sleeper.answers(fence, outcome(200, "from another life"))).await;
    done(&scene.store, next.answers(fence, outcome(200, "mine"))).await;
}

/// An onlooker settles only what it saw: any part of the stamp that changed refuses it.
pub async fn an_onlooker_settles_only_what_it_saw<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("seen");
    enter(&scene.store, &caller).await;
    let found = stored(&scene.store, caller.id()).await;
    let stamp = found.stamp();
    for by in [
        Stamp { fence: stamp.fence.next(), ..stamp },
        Stamp { owner: Owner(99), ..stamp },
        Stamp { tag: StateTag::Pending, ..stamp },
        Stamp { tag: StateTag::InDoubt, ..stamp },
        Stamp { until: stamp.until.plus(Duration::from_micros(1)), ..stamp },
        Stamp { until: Timestamp::ZERO, ..stamp },
    ] {
        lost(&scene.store, Settle { by: By::Onlooker(by), ..give_up(&found) }).await;
    }
    done(&scene.store, give_up(&found)).await;
    lost(&scene.store, give_up(&found)).await;
}

/// A person who saw a doubt resolves it, and with the outcome they give.
pub async fn a_person_resolves_a_doubt<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("resolved");
    let fence = enter(&scene.store, &caller).await;
    done(&scene.store, caller.hears_nothing(fence)).await;
    let seen = stored(&scene.store, caller.id()).await;
    done(&scene.store, onlook(&seen, Settlement::Completed(outcome(200, "it happened")))).await;
    lost(&scene.store, onlook(&seen, Settlement::Released)).await;
    lost(&scene.store, caller.answers(fence, outcome(200, "too late"))).await;
    let found = stored(&scene.store, caller.id()).await;
    assert_eq!(found.outcome(), Some(&outcome(200, "it happened")));
}

/// Settling what is not there changes nothing and creates nothing.
pub async fn settling_what_is_not_there_is_lost<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("nothing");
    lost(&scene.store, caller.answers(Fence::FIRST, outcome(200, "of nothing"))).await;
    let by = Stamp {
        fence: Fence::FIRST,
        owner: caller.owner,
        tag: StateTag::Running,
        until: Timestamp::ZERO,
    };
    let settle = caller.sends_nothing(Fence::FIRST);
    lost(&scene.store, Settle { by: By::Onlooker(by), ..settle }).await;
}

/// An outcome is kept at least as long as its settle asks, and retention is never shortened.
pub async fn an_outcome_is_kept_at_least_as_long_as_asked<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let from_creation = ScenarioCaller::new("creation");
    let from_completion = ScenarioCaller::new("completion").retaining_from(RetainFrom::Completion);
    let at_the_end = ScenarioCaller::new("end").retaining(LEASE);
    for caller in [&from_creation, &from_completion, &at_the_end] {
        enter(&scene.store, caller).await;
    }
    scene.pass(LEASE / 2).await;
    for caller in [&from_creation, &from_completion, &at_the_end] {
        done(&scene.store, caller.answers(Fence::FIRST, outcome(200, "kept"))).await;
    }
    let found = stored(&scene.store, from_creation.id()).await;
    assert_eq!(found.expires_at, found.created_at.plus(WINDOW));
    let found = stored(&scene.store, from_completion.id()).await;
    assert_eq!(found.expires_at, found.changed_at.plus(WINDOW));
    let found = stored(&scene.store, at_the_end.id()).await;
    assert_eq!(found.expires_at, found.changed_at.plus(LEASE));
}

/// A finished record no longer holds its request; one in doubt still does.
pub async fn a_request_is_dropped_when_nobody_needs_it<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let doubted = ScenarioCaller::new("doubted").keeping(b"kept");
    let fence = enter(&scene.store, &doubted).await;
    done(&scene.store, doubted.hears_nothing(fence)).await;
    let found = stored(&scene.store, doubted.id()).await;
    assert_eq!(found.request(), Some(&Bytes::from_static(b"kept")));
    let finished = ScenarioCaller::new("finished").recovering(Recovery::Resend).keeping(b"kept");
    complete(&scene.store, &finished, "done").await;
    scene.pass(WINDOW).await;
    enter(&scene.store, &ScenarioCaller::new("finished").owner(2)).await;
    assert_eq!(stored(&scene.store, finished.id()).await.request(), None);
}

fn header(name: &str, value: Bytes) -> Header {
    Header { name: name.to_owned(), value }
}
