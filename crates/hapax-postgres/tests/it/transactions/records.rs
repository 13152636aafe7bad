//! The same records as everybody else's.

use hapax_core::{
    Policy, Recovery, RetainFrom, Retention, RunMode, transaction::TransactionAnswer,
};
use hapax_engine::{Admission, BeginRequest, Engine, transactional::InTransactionError};
use hapax_verify::conformance::Backend;
use std::time::Duration;

use super::{
    doors::Door,
    through_every_door,
    world::{World, is_replayed, is_stored, outcome, request},
};
use crate::reference::operation;

through_every_door!(
    what_a_transaction_stored_is_replayed_by_the_engine_and_by_sql,
    what_the_engine_stored_is_replayed_in_a_transaction,
    an_operation_that_a_live_owner_has_is_busy,
    an_abandoned_operation_is_followed_only_where_it_may_be_repeated,
    a_released_and_an_expired_operation_run_under_the_next_fence,
    a_damaged_outcome_is_refused,
);

const LEASE: Duration = Duration::from_secs(30);

pub(super) async fn ask<D: Door>(
    world: &World<D>,
    key: &str,
    recovery: Recovery,
) -> BeginRequest<'static> {
    let operation = operation(key);
    let salt = world.hapax.salt().await.unwrap();
    let fingerprint = salt.tenant_key(operation.tenant()).fingerprint(&request());
    let window = Duration::from_secs(24 * 60 * 60);
    let retention = Retention { window, from: RetainFrom::Creation, tombstone: Duration::ZERO };
    let policy = Policy::new(LEASE, retention, recovery).unwrap();
    BeginRequest {
        operation,
        request: fingerprint.into(),
        mode: RunMode::Run { request: None },
        policy,
    }
}

pub(super) fn engine<D: Door>(world: &World<D>) -> Engine {
    Engine::start(world.store.clone(), hapax_engine::Options::default())
}

async fn what_a_transaction_stored_is_replayed_by_the_engine_and_by_sql<D: Door>() {
    let world = World::<D>::new().await;
    assert!(is_stored(&world.pay("k", 201).await));
    let begun = engine(&world).begin(&ask(&world, "k", Recovery::Hold).await).await.unwrap();
    let Admission::Replay(record) = begun else { panic!("{begun:?}") };
    assert_eq!(record.outcome(), Some(&outcome(201)));
    let begin = "SELECT decision, status, body FROM hapax.begin('acme', 'POST /pay', 'k', '{\"amount\":100}')";
    let row = world.postgres.client().await.query_one(begin, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), ("replay", 201));
    assert_eq!(row.get::<_, Vec<u8>>(2), b"{\"ok\":true}");
}

async fn what_the_engine_stored_is_replayed_in_a_transaction<D: Door>() {
    let world = World::<D>::new().await;
    let begun = engine(&world).begin(&ask(&world, "k", Recovery::Hold).await).await.unwrap();
    let Admission::Execute(permit) = begun else { panic!("{begun:?}") };
    permit.settle(hapax_core::AttemptEnd::completed(outcome(201))).await.unwrap();
    let answered = world.pay("k", 500).await;
    assert!(is_replayed(&answered), "{answered:?}");
    assert_eq!(answered.unwrap().outcome, outcome(201));
    assert_eq!(world.calls(), 0);
}

async fn an_operation_that_a_live_owner_has_is_busy<D: Door>() {
    let world = World::<D>::new().await;
    let begun = engine(&world).begin(&ask(&world, "k", Recovery::Resend).await).await.unwrap();
    let Admission::Execute(permit) = begun else { panic!("{begun:?}") };
    let refused = world.pay("k", 201).await;
    let Err(InTransactionError::Refused(TransactionAnswer::Busy { retry_after })) = refused else {
        panic!("{refused:?}")
    };
    assert!(retry_after > Duration::from_secs(20), "{retry_after:?}");
    drop(permit);
}

async fn an_abandoned_operation_is_followed_only_where_it_may_be_repeated<D: Door>() {
    let world = World::<D>::new().await;
    for recovery in [Recovery::Resend, Recovery::Probe, Recovery::Hold] {
        let key = recovery.as_str();
        let begun = engine(&world).begin(&ask(&world, key, recovery).await).await.unwrap();
        let Admission::Execute(permit) = begun else { panic!("{begun:?}") };
        // A process that dies says nothing.
        std::mem::forget(permit);
    }
    world.postgres.step_clock(31_000_000).await;
    let followed = world.pay("resend", 201).await;
    assert!(is_stored(&followed), "{followed:?}");
    for key in ["probe", "hold"] {
        let refused = world.pay(key, 201).await;
        assert!(
            matches!(refused, Err(InTransactionError::Refused(TransactionAnswer::InDoubt { .. }))),
            "{refused:?}"
        );
    }
    let fence = "SELECT fence FROM hapax.operations WHERE key = 'resend' AND state = 3";
    assert_eq!((world.postgres.number(fence).await, world.payments().await), (2, 1));
    assert!(is_replayed(&world.pay("resend", 201).await));
}

async fn a_released_and_an_expired_operation_run_under_the_next_fence<D: Door>() {
    let world = World::<D>::new().await;
    let begun = engine(&world).begin(&ask(&world, "k", Recovery::Hold).await).await.unwrap();
    let Admission::Execute(permit) = begun else { panic!("{begun:?}") };
    permit.give_back().await.unwrap();
    // The engine watched the clock, and may be about to say so; from now on nobody does.
    let unwatched = "CREATE RULE unwatched AS ON INSERT TO hapax.clock_mark DO INSTEAD NOTHING";
    world.postgres.client().await.batch_execute(unwatched).await.unwrap();
    world.postgres.execute("DELETE FROM hapax.clock_mark", &[]).await;
    let fence = "SELECT fence FROM hapax.operations";
    for expected in [2, 3] {
        let answered = world.pay("k", 201).await;
        assert!(is_stored(&answered), "{answered:?}");
        assert_eq!(world.postgres.number(fence).await, expected);
        world.postgres.step_clock(25 * 60 * 60 * 1_000_000).await;
    }
    assert_eq!(world.payments().await, 2);
}

async fn a_damaged_outcome_is_refused<D: Door>() {
    let world = World::<D>::new().await;
    assert!(is_stored(&world.pay("k", 201).await));
    let damage = hapax_verify::conformance::Damage::FlippedBodyBit;
    world.postgres.damage(operation("k").id(), damage).await;
    let refused = world.pay("k", 201).await;
    assert!(matches!(refused, Err(InTransactionError::Store(_))), "{refused:?}");
    assert_eq!(world.payments().await, 1);
}
