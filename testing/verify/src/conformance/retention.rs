//! Retention: what is purged, buried or failed, when, and what never is.

use std::time::Duration;

use hapax_core::{
    Decision, Fence, Outcome, RetainFrom, State, StateTag, Store, clock::ClockMark, store::Purged,
};

use super::{
    Backend,
    scene::{
        LEASE, ROUNDS_MAX, ScenarioCaller, StoreScene, WINDOW, arrive, complete, done, enter, now,
        outcome, purge_all, record, stored,
    },
};

const TOMBSTONE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const NOTHING: Purged = Purged { deleted: 0, buried: 0, timed_out: 0 };

/// Finished records are removed once they are past retention, and not before.
pub async fn finished_records_are_removed_past_retention<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let (store, first) = (&scene.store, Fence::FIRST);
    let [completed, failed, released, fresh] =
        ["completed", "failed", "released", "fresh"].map(ScenarioCaller::new);
    complete(store, &completed, "done").await;
    enter(store, &failed).await;
    done(store, failed.refuses(first, outcome(404, "no"))).await;
    enter(store, &released).await;
    done(store, released.breaks(first, outcome(500, "oh"))).await;
    scene.pass(WINDOW / 2).await;
    complete(store, &fresh, "done").await;
    assert_eq!(purge_all(store).await, NOTHING);
    scene.pass(WINDOW / 2).await;
    assert_eq!(purge_all(store).await, Purged { deleted: 3, ..NOTHING });
    for caller in [&completed, &failed, &released] {
        assert_eq!(record(store, caller.id()).await, None);
        assert_eq!(enter(store, caller).await, first);
    }
    assert_eq!(stored(store, fresh.id()).await.tag(), StateTag::Completed);
}

/// The first attempt there ever was, if it did nothing, is remembered for a lease and no longer, and
/// leaves no tombstone.
pub async fn what_did_nothing_is_forgotten_after_a_lease<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let (store, first) = (&scene.store, Fence::FIRST);
    let [refused, buried] = ["refused", "buried"].map(ScenarioCaller::new);
    for caller in [refused.clone(), buried.clone().burying(TOMBSTONE)] {
        enter(store, &caller).await;
        done(store, caller.sends_nothing(first)).await;
    }
    assert_eq!(purge_all(store).await, NOTHING);
    // Within the lease it is the same life, so the fence grows, and its end is remembered.
    assert_eq!(enter(store, &buried).await, first.next());
    done(store, buried.sends_nothing(first.next())).await;
    scene.pass(LEASE).await;
    assert_eq!(purge_all(store).await, Purged { deleted: 1, ..NOTHING });
    assert_eq!(record(store, refused.id()).await, None);
    assert_eq!(enter(store, &refused).await, first);
    assert_eq!(stored(store, buried.id()).await.tag(), StateTag::Released);
}

/// Nothing that is running or in doubt ever expires.
pub async fn nothing_in_flight_or_in_doubt_expires<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let [running, doubted] = ["running", "doubted"].map(ScenarioCaller::new);
    enter(&scene.store, &running).await;
    let fence = enter(&scene.store, &doubted).await;
    done(&scene.store, doubted.hears_nothing(fence)).await;
    scene.pass(100 * WINDOW).await;
    assert_eq!(purge_all(&scene.store).await, NOTHING);
    assert!(matches!(arrive(&scene.store, &running.owner(2)).await, Decision::GiveUp));
    assert!(matches!(arrive(&scene.store, &doubted.owner(2)).await, Decision::InDoubt { .. }));
}

/// A record with a tombstone is buried first, and removed when the tombstone is over.
pub async fn a_tombstone_outlives_its_record<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("buried").burying(TOMBSTONE);
    complete(&scene.store, &caller, "done").await;
    let finished = stored(&scene.store, caller.id()).await;
    scene.pass(WINDOW).await;
    assert_eq!(purge_all(&scene.store).await, Purged { buried: 1, ..NOTHING });
    let buried = stored(&scene.store, caller.id()).await;
    assert_eq!(buried.state, State::Buried);
    assert_eq!((buried.fence, buried.owner), (finished.fence, finished.owner));
    assert_eq!(buried.expires_at, finished.expires_at);
    assert_eq!(buried.tombstone, TOMBSTONE);
    scene.pass(TOMBSTONE / 2).await;
    assert_eq!(purge_all(&scene.store).await, NOTHING);
    scene.pass(TOMBSTONE / 2).await;
    assert_eq!(purge_all(&scene.store).await, Purged { deleted: 1, ..NOTHING });
    assert_eq!(record(&scene.store, caller.id()).await, None);
}

/// A record whose tombstone is over too is removed at once.
pub async fn a_record_past_its_tombstone_is_removed_at_once<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    complete(&scene.store, &ScenarioCaller::new("both").burying(TOMBSTONE), "done").await;
    scene.pass(WINDOW + TOMBSTONE).await;
    assert_eq!(purge_all(&scene.store).await, Purged { deleted: 1, ..NOTHING });
}

/// A pending operation nobody came for fails, and that is kept for another window.
pub async fn a_pending_operation_nobody_came_for_fails<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("waiting").queueing(b"later");
    enter(&scene.store, &caller).await;
    scene.pass(WINDOW - LEASE).await;
    assert_eq!(purge_all(&scene.store).await, NOTHING);
    scene.pass(LEASE).await;
    assert_eq!(purge_all(&scene.store).await, Purged { timed_out: 1, ..NOTHING });
    let found = stored(&scene.store, caller.id()).await;
    assert_eq!(found.state, State::Failed { outcome: Outcome::never_run() });
    assert_eq!(found.expires_at, found.changed_at.plus(WINDOW));
    assert!(matches!(arrive(&scene.store, &caller).await, Decision::Replay));
    scene.pass(WINDOW).await;
    assert_eq!(purge_all(&scene.store).await, Purged { deleted: 1, ..NOTHING });
}

/// A purge touches no more records than it was asked to, and gets through them all.
pub async fn a_purge_is_bounded<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    for at in 0..20 {
        complete(&scene.store, &ScenarioCaller::new(&format!("old {at}")), "done").await;
    }
    scene.pass(WINDOW).await;
    let mut total = 0;
    for _ in 0..ROUNDS_MAX {
        let purged = scene.store.purge(3).await.unwrap();
        assert!(purged.total() <= 3);
        total += purged.total();
    }
    assert_eq!(total, 20);
}

/// Retention that starts at completion is counted from there.
pub async fn retention_from_completion_is_counted_from_there<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("completion").retaining_from(RetainFrom::Completion);
    let fence = enter(&scene.store, &caller).await;
    scene.pass(WINDOW / 2).await;
    done(&scene.store, caller.answers(fence, outcome(200, "done"))).await;
    scene.pass(WINDOW / 2).await;
    assert_eq!(purge_all(&scene.store).await, NOTHING);
    assert!(matches!(arrive(&scene.store, &caller).await, Decision::Replay));
    scene.pass(WINDOW / 2).await;
    assert_eq!(purge_all(&scene.store).await, Purged { deleted: 1, ..NOTHING });
}

/// Expiry follows the store's clock, wherever it jumps.
pub async fn expiry_follows_the_stores_clock<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("clock");
    complete(&scene.store, &caller, "done").await;
    scene.pass(2 * WINDOW).await;
    assert!(matches!(arrive(&scene.store, &caller).await, Decision::Execute(_)));
    scene.turn_back(2 * WINDOW).await;
    assert!(matches!(arrive(&scene.store, &caller).await, Decision::Replay));
    assert_eq!(purge_all(&scene.store).await, NOTHING);
    scene.turn_back(2 * WINDOW).await;
    assert!(matches!(arrive(&scene.store, &caller).await, Decision::Replay));
}

/// A clock that jumped removes, buries and fails nothing until it is trusted there.
pub async fn nothing_is_purged_beyond_where_the_clock_is_trusted<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let store = &scene.store;
    complete(store, &ScenarioCaller::new("finished"), "done").await;
    complete(store, &ScenarioCaller::new("to be buried").burying(TOMBSTONE), "done").await;
    enter(store, &ScenarioCaller::new("waiting").queueing(b"later")).await;
    let before = now(store).await;
    let mark = |trusted_until| ClockMark { steady_since: before, seen_at: before, trusted_until };
    store.keep_clock(mark(before.plus(LEASE))).await.unwrap();
    scene.pass(2 * WINDOW).await;
    assert_eq!(purge_all(store).await, NOTHING);
    store.keep_clock(mark(before.plus(2 * WINDOW))).await.unwrap();
    assert_eq!(purge_all(store).await, Purged { deleted: 1, buried: 1, timed_out: 1 });
}

/// What one handle keeps of the clock every other reads; a new database has nothing.
pub async fn what_is_kept_of_the_clock_is_there_for_every_handle<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    assert_eq!(scene.store.clock().await.unwrap().mark, None);
    let first = now(&scene.store).await;
    for hours in [2_u32, 1] {
        let (hour, other) = (WINDOW / 24, scene.open().await);
        let mark = ClockMark {
            steady_since: first.minus(hours * hour),
            seen_at: first.plus(hours * hour),
            trusted_until: first.plus(2 * hours * hour),
        };
        scene.store.keep_clock(mark).await.unwrap();
        let reading = other.clock().await.unwrap();
        assert_eq!(reading.mark, Some(mark));
        assert!(first <= reading.now && reading.now < first.plus(LEASE), "{reading:?}");
    }
}
