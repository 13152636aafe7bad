//! Claims and takeovers: written if what is stored is what the claimant expects.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Attempt, Fence, Owner, Record, Recovery, Stamp, State, StateTag, Store, Timestamp,
    limits::{BATCH_WRITES_MAX, KEY_BYTES_MAX, SCOPE_BYTES_MAX, TENANT_BYTES_MAX},
    store::{Claim, Entry, Over, Write, Written},
};

use super::{
    Backend,
    scene::{
        LEASE, ScenarioCaller, StoreScene, WINDOW, commit_one, complete, done, enter, now,
        operation, outcome, record, stored, win, write,
    },
};

/// A first claim is stored with the instant of its write.
pub async fn a_first_claim_is_stored_with_the_instant_of_its_write<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("run").recovering(Recovery::Probe).keeping(b"POST /payments");
    let before = now(&scene.store).await;
    let claim = caller.first_claim(scene.store.salt());
    let first = Write::Claim(claim.clone());
    let Written::Done { now: written } = write(&scene.store, first).await else {
        panic!("an absent key must be won");
    };
    assert!(before <= written && written <= now(&scene.store).await);
    let expected = Record {
        operation: caller.operation.clone(),
        fingerprint: claim.fingerprint,
        fence: Fence::FIRST,
        owner: caller.owner,
        recovery: Recovery::Probe,
        created_at: written,
        changed_at: written,
        expires_at: written.plus(WINDOW),
        tombstone: Duration::ZERO,
        state: State::Running {
            lease_until: written.plus(LEASE),
            request: Some(Bytes::from_static(b"POST /payments")),
        },
    };
    assert_eq!(stored(&scene.store, caller.id()).await, expected);
}

/// A queued claim keeps its request for the worker.
pub async fn a_queued_claim_keeps_its_request_for_the_worker<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("queue").queueing(b"\x00\xff later");
    enter(&scene.store, &caller).await;
    let found = stored(&scene.store, caller.id()).await;
    let request = Bytes::from_static(b"\x00\xff later");
    let pick_up_by = found.created_at.plus(LEASE);
    assert_eq!(found.state, State::Pending { pick_up_by, request });
}

/// A claim that is not won is told what is stored, whatever state that is in.
pub async fn a_claim_that_is_not_won_is_told_what_is_stored<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let [running, queued, completed, doubted] = ["running", "queued", "completed", "doubted"]
        .map(|key| ScenarioCaller::new(key).keeping(b"kept"));
    enter(store, &running).await;
    enter(store, &queued.clone().queueing(b"kept")).await;
    complete(store, &completed, "done").await;
    let fence = enter(store, &doubted).await;
    done(store, doubted.hears_nothing(fence)).await;
    for caller in [running, queued, completed, doubted] {
        let claim = caller.owner(2).first_claim(store.salt());
        let claimed = write(store, Write::Claim(claim)).await;
        assert!(matches!(claimed, Written::Refused { record: Some(_), .. }), "{claimed:?}");
    }
}

/// A claim over what was removed meanwhile finds nothing.
pub async fn a_claim_over_what_was_removed_finds_nothing<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let stamp = Stamp {
        fence: Fence::FIRST,
        owner: Owner(1),
        tag: StateTag::Completed,
        until: Timestamp::ZERO,
    };
    for over in [Over::Spent(stamp), Over::Abandoned(stamp)] {
        let claim = ScenarioCaller::new("removed").owner(2).first_claim(scene.store.salt());
        let claim = Claim { over, fence: Fence::FIRST.next(), ..claim };
        let claimed = write(&scene.store, Write::Claim(claim)).await;
        assert!(matches!(claimed, Written::Refused { record: None, .. }), "{claimed:?}");
    }
}

/// A claim over a stamp that is no longer true in any of its parts is not won.
pub async fn a_claim_over_an_outdated_stamp_is_not_won<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("outdated").recovering(Recovery::Resend);
    enter(&scene.store, &caller).await;
    scene.pass(LEASE).await;
    let stamp = stored(&scene.store, caller.id()).await.stamp();
    let outdated = [
        Stamp { fence: stamp.fence.next(), ..stamp },
        Stamp { owner: Owner(stamp.owner.0 + 1), ..stamp },
        Stamp { tag: StateTag::InDoubt, ..stamp },
        Stamp { until: stamp.until.plus(Duration::from_micros(1)), ..stamp },
        Stamp { until: stamp.until.minus(Duration::from_micros(1)), ..stamp },
    ];
    let base = caller.owner(2).first_claim(scene.store.salt());
    let base = Claim { fence: stamp.fence.next(), ..base };
    for wrong in outdated {
        for over in [Over::Spent(wrong), Over::Abandoned(wrong)] {
            let claim = Claim { over, ..base.clone() };
            let claimed = write(&scene.store, Write::Claim(claim)).await;
            assert!(matches!(claimed, Written::Refused { record: Some(_), .. }), "{claimed:?}");
        }
    }
    win(&scene.store, Claim { over: Over::Abandoned(stamp), ..base }).await;
}

/// A claim over a spent record begins a new life with everything of its own.
pub async fn a_new_life_takes_everything_from_its_claim<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let first = ScenarioCaller::new("life").recovering(Recovery::Resend).keeping(b"old");
    complete(&scene.store, &first, "old").await;
    let old = stored(&scene.store, first.id()).await;
    scene.pass(WINDOW).await;
    let second = ScenarioCaller::new("life").owner(2).saying("another").retaining(2 * WINDOW);
    let second = second.burying(WINDOW).recovering(Recovery::Probe);
    enter(&scene.store, &second).await;
    let new = stored(&scene.store, first.id()).await;
    assert_eq!(new.fence, Fence::FIRST.next());
    assert_eq!(new.owner, Owner(2));
    assert_ne!(new.fingerprint, old.fingerprint);
    assert_eq!(new.recovery, Recovery::Probe);
    assert_eq!(new.tombstone, WINDOW);
    assert!(new.created_at >= old.expires_at);
    assert_eq!(new.changed_at, new.created_at);
    assert_eq!(new.expires_at, new.created_at.plus(2 * WINDOW));
    assert_eq!(new.request(), None, "the old life's request is not the new one's");
    assert_eq!(new.outcome(), None, "the old life's outcome is not the new one's");
}

/// A takeover continues the same life: beginning, retention, recovery and request stay.
pub async fn a_takeover_continues_the_same_life<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let first = ScenarioCaller::new("goes on").recovering(Recovery::Resend).keeping(b"kept");
    enter(&scene.store, &first).await;
    let old = stored(&scene.store, first.id()).await;
    scene.pass(2 * LEASE).await;
    // The follower's own wishes for recovery and retention do not matter.
    enter(&scene.store, &ScenarioCaller::new("goes on").owner(2)).await;
    let new = stored(&scene.store, first.id()).await;
    assert_eq!((new.fence, new.owner), (old.fence.next(), Owner(2)));
    assert_eq!((new.created_at, new.expires_at), (old.created_at, old.expires_at));
    assert_eq!((new.recovery, new.tombstone), (old.recovery, old.tombstone));
    assert_eq!(new.fingerprint, old.fingerprint);
    assert_eq!(new.request(), Some(&Bytes::from_static(b"kept")));
    assert!(new.changed_at >= old.until());
    assert_eq!(new.until(), new.changed_at.plus(LEASE));
}

/// A takeover that brings a request replaces the one that was kept.
pub async fn a_takeover_may_bring_its_own_request<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let first = ScenarioCaller::new("brings").recovering(Recovery::Resend).keeping(b"old");
    enter(&scene.store, &first).await;
    scene.pass(LEASE).await;
    enter(&scene.store, &first.clone().owner(2).keeping(b"new")).await;
    let found = stored(&scene.store, first.id()).await;
    assert_eq!(found.request(), Some(&Bytes::from_static(b"new")));
}

/// The same key of another tenant or in another scope is another operation.
pub async fn a_key_belongs_to_its_tenant_and_scope<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let names = [("acme", "a", "k"), ("acme", "b", "k"), ("other", "a", "k"), ("acme", "a", "K")];
    for (tenant, scope, key) in names {
        enter(&scene.store, &ScenarioCaller::new("k").of(operation(tenant, scope, key))).await;
    }
    for (tenant, scope, key) in names {
        let operation = operation(tenant, scope, key);
        assert_eq!(stored(&scene.store, operation.id()).await.operation, operation);
    }
}

/// Names of every length and with every visible character come back as they are.
pub async fn names_come_back_as_they_are<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let visible: String = (b' '..=b'~').map(char::from).collect();
    let operations = [
        operation("t", "s", "k"),
        operation(&visible, &visible, &visible),
        operation(" lead", "trail ", "'; --"),
        operation(
            &"t".repeat(TENANT_BYTES_MAX),
            &"s".repeat(SCOPE_BYTES_MAX),
            &"k".repeat(KEY_BYTES_MAX),
        ),
    ];
    for operation in operations {
        enter(&scene.store, &ScenarioCaller::new("k").of(operation.clone())).await;
        assert_eq!(stored(&scene.store, operation.id()).await.operation, operation);
    }
}

/// Owners at both ends of their range come back as they are.
pub async fn owners_come_back_as_they_are<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    for owner in [i64::MIN, -1, 0, 1, i64::MAX] {
        let caller = ScenarioCaller::new(&format!("owner {owner}")).owner(owner);
        enter(&scene.store, &caller).await;
        assert_eq!(stored(&scene.store, caller.id()).await.owner, Owner(owner));
        done(&scene.store, caller.answers(Fence::FIRST, outcome(200, "mine"))).await;
    }
}

/// What one handle wrote, the other sees at once.
pub async fn two_handles_see_each_others_writes_at_once<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let other = scene.open().await;
    for round in 0..20 {
        let caller = ScenarioCaller::new(&format!("seen {round}"));
        let fence = enter(&scene.store, &caller).await;
        let there = stored(&other, caller.id()).await;
        assert_eq!(there, stored(&scene.store, caller.id()).await);
        done(&other, caller.answers(fence, outcome(200, "seen"))).await;
        assert_eq!(stored(&scene.store, caller.id()).await.tag(), StateTag::Completed);
    }
}

/// Every handle on a database has the salt it was created with.
pub async fn every_handle_has_the_same_salt<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    assert!(scene.open().await.salt() == scene.store.salt());
}

/// A batch of all kinds is answered item by item, in order.
pub async fn a_mixed_batch_is_answered_in_order<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let (store, first) = (&scene.store, Fence::FIRST);
    let caller = |key: &str, at: usize| ScenarioCaller::new(&format!("{key} {at}"));
    for at in 0..10 {
        enter(store, &caller("settle", at)).await;
        enter(store, &caller("renew", at)).await;
        if at.is_multiple_of(3) {
            enter(store, &caller("claim", at)).await;
        }
    }
    let own = |at: usize| if at.is_multiple_of(2) { 1 } else { 2 };
    let mixed = |at| {
        let settle = caller("settle", at).owner(own(at)).answers(first, outcome(200, "mixed"));
        [
            Write::Claim(caller("claim", at).owner(2).first_claim(store.salt())),
            Write::Settle(settle),
            Write::Renew(caller("renew", at).owner(own(at)).renewal(first)),
        ]
    };
    let batch = (0..10).flat_map(mixed).collect();
    let answers = store.commit(batch).await;
    assert_eq!(answers.len(), 30);
    for (place, answer) in answers.into_iter().enumerate() {
        let (at, kind) = (place / 3, ["claim", "settle", "renew"][place % 3]);
        let expected = if kind == "claim" { at % 3 != 0 } else { own(at) == 1 };
        let counted = match answer.unwrap() {
            Written::Done { .. } => true,
            Written::Refused { record, .. } => {
                assert_eq!(record.unwrap().operation, caller(kind, at).operation);
                false
            }
        };
        assert_eq!(counted, expected, "the answer to another write stands at {place}");
    }
}

/// The largest batch of each kind is answered item by item.
pub async fn the_largest_batches_are_answered_item_by_item<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let callers: Vec<_> =
        (0..BATCH_WRITES_MAX).map(|at| ScenarioCaller::new(&format!("large {at}"))).collect();
    let salt = store.salt();
    let claims = callers.iter().map(|caller| Write::Claim(caller.first_claim(salt))).collect();
    let renewals =
        callers.iter().map(|caller| Write::Renew(caller.renewal(Fence::FIRST))).collect();
    let answer = |(at, caller): (usize, &ScenarioCaller)| {
        Write::Settle(caller.answers(Fence::FIRST, outcome(200, &at.to_string())))
    };
    let settles = callers.iter().enumerate().map(answer).collect();
    for batch in [claims, renewals, settles] {
        let answers = store.commit(batch).await;
        assert_eq!(answers.len(), BATCH_WRITES_MAX);
        assert!(answers.iter().all(|answer| matches!(answer, Ok(Written::Done { .. }))));
    }

    let loaded = store.load(callers.iter().map(ScenarioCaller::id).collect()).await;
    assert_eq!(loaded.len(), BATCH_WRITES_MAX);
    for (at, loaded) in loaded.into_iter().enumerate() {
        let record = loaded.unwrap().record.unwrap();
        assert_eq!(record.outcome(), Some(&outcome(200, &at.to_string())));
    }
}

/// A load answers in order, with repeated and unknown ids among the rest.
pub async fn a_load_answers_in_order<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let [one, two, none] = ["one", "two", "none"].map(ScenarioCaller::new);
    enter(&scene.store, &one).await;
    enter(&scene.store, &two).await;
    let ids = vec![two.id(), none.id(), one.id(), two.id()];
    let found: Vec<_> = scene.store.load(ids).await.into_iter().map(Result::unwrap).collect();
    let found: Vec<_> =
        found.into_iter().map(|loaded| loaded.record.map(|record| record.operation)).collect();
    let (one, two) = (Some(one.operation), Some(two.operation));
    assert_eq!(found, [two.clone(), None, one, two]);
    assert!(scene.store.load(Vec::new()).await.is_empty());
}

/// An empty batch is answered with nothing.
pub async fn an_empty_batch_is_answered_with_nothing<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    assert!(scene.store.commit(Vec::new()).await.is_empty());
}

/// A claim's request of one mebibyte, or of nothing, comes back byte for byte.
pub async fn a_request_comes_back_byte_for_byte<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let large: Bytes = (0..1 << 20).map(|at: u32| at.to_le_bytes()[at as usize % 3]).collect();
    for (key, request) in [("empty", Bytes::new()), ("large", large)] {
        let caller = ScenarioCaller::new(key);
        let claim = Claim {
            entry: Entry::Run { lease: LEASE, request: Some(request.clone()) },
            ..caller.first_claim(scene.store.salt())
        };
        let claimed = commit_one(&scene.store, Write::Claim(claim)).await.unwrap();
        assert!(matches!(claimed, Written::Done { .. }));
        let found = record(&scene.store, caller.id()).await.unwrap();
        assert!(found.request() == Some(&request), "{key} request was changed");
    }
}

/// A first claim that is withdrawn leaves nothing; whoever does not run it as the first withdraws nothing.
pub async fn a_first_claim_that_is_withdrawn_leaves_nothing<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    let caller = ScenarioCaller::new("withdrawn");
    enter(store, &caller).await;
    let attempt = Attempt { id: caller.id(), fence: Fence::FIRST, owner: caller.owner };
    let stranger = Attempt { owner: Owner(caller.owner.0 + 1), ..attempt };
    let later = Attempt { fence: Fence::FIRST.next(), ..attempt };
    for other in [stranger, later] {
        assert!(!store.withdraw(other).await.unwrap());
        assert_eq!(stored(store, caller.id()).await.tag(), StateTag::Running);
    }
    assert!(store.withdraw(attempt).await.unwrap());
    assert!(record(store, caller.id()).await.is_none());
    assert!(!store.withdraw(attempt).await.unwrap());
    let finished = ScenarioCaller::new("finished");
    complete(store, &finished, "done").await;
    let attempt = Attempt { id: finished.id(), fence: Fence::FIRST, owner: finished.owner };
    assert!(!store.withdraw(attempt).await.unwrap());
    assert_eq!(stored(store, finished.id()).await.tag(), StateTag::Completed);
}
