//! Transactions that look at the key only when they store its outcome.

use std::sync::Arc;

use hapax_core::transaction::TransactionAnswer;
use hapax_engine::transactional::{Fate, InTransactionError, KeyLook, TransactionOptions};

use super::{
    concurrency::{LEVELS, hold, one_of_sixteen_runs},
    doors::Door,
    through_every_door,
    world::{World, answer, is_replayed, is_stored, options, pay},
};

through_every_door!(
    of_sixteen_duplicates_one_commits_at_every_isolation_level,
    a_duplicate_is_run_rolled_back_and_answered_from_the_record,
    a_duplicate_that_meets_a_constraint_of_its_own_is_answered_from_the_record,
    a_duplicate_that_gives_another_answer_is_answered_from_the_record,
    a_failure_of_the_work_is_told_where_nothing_is_stored,
    a_failure_is_kept_without_its_writes_and_its_event,
    whoever_records_first_wins_over_who_began_first,
);

fn unseen() -> TransactionOptions {
    TransactionOptions { look: KeyLook::AtEnd, ..options() }
}

async fn of_sixteen_duplicates_one_commits_at_every_isolation_level<D: Door>() {
    for level in LEVELS {
        let world = Arc::new(World::<D>::with(unseen(), Some(level)).await);
        one_of_sixteen_runs(Arc::clone(&world), level).await;
        assert_eq!(world.records().await, 1, "{level}");
    }
}

async fn a_duplicate_is_run_rolled_back_and_answered_from_the_record<D: Door>() {
    let world = World::<D>::with(unseen(), None).await;
    let first = world.pay("k", 201).await;
    assert!(is_stored(&first), "{first:?}");
    let second = world.pay("k", 201).await;
    assert!(is_replayed(&second), "{second:?}");
    assert_eq!(first.unwrap().outcome, second.unwrap().outcome);
    assert_eq!((world.payments().await, world.events().await, world.calls()), (1, 1, 2));
}

async fn a_duplicate_that_meets_a_constraint_of_its_own_is_answered_from_the_record<D: Door>() {
    let world = World::<D>::with(unseen(), None).await;
    world.postgres.execute("CREATE UNIQUE INDEX ON payments (key)", &[]).await;
    assert!(is_stored(&world.pay("k", 201).await));
    let second = world.pay("k", 201).await;
    assert!(is_replayed(&second), "{second:?}");
    assert_eq!((world.payments().await, world.events().await, world.calls()), (1, 1, 2));
}

async fn a_duplicate_that_gives_another_answer_is_answered_from_the_record<D: Door>() {
    let world = World::<D>::with(unseen(), None).await;
    assert!(is_stored(&world.pay("k", 201).await));
    for status in [402, 500] {
        let again = world.pay("k", status).await.unwrap();
        assert!(matches!(again.fate, Fate::Replayed { .. }), "{again:?}");
        assert_eq!(again.outcome.status(), 201);
    }
    assert_eq!((world.payments().await, world.events().await, world.records().await), (1, 1, 1));
}

async fn a_failure_of_the_work_is_told_where_nothing_is_stored<D: Door>() {
    let world = World::<D>::with(unseen(), None).await;
    let failed = world.run("k", |mut tx, key| async move {
        pay::<D>(&mut tx, &key).await?;
        Err("out of paper".into())
    });
    let failed = failed.await;
    assert!(
        matches!(&failed, Err(InTransactionError::Failed(error)) if error.to_string() == "out of paper"),
        "{failed:?}"
    );
    assert_eq!((world.payments().await, world.events().await, world.records().await), (0, 0, 0));
    assert!(is_stored(&world.pay("k", 201).await));
}

async fn a_failure_is_kept_without_its_writes_and_its_event<D: Door>() {
    let world = World::<D>::with(unseen(), None).await;
    assert!(is_stored(&world.pay("k", 402).await));
    assert_eq!((world.payments().await, world.events().await, world.records().await), (0, 0, 1));
    let second = world.pay("k", 201).await.unwrap();
    assert!(matches!(second.fate, Fate::Replayed { .. }));
    assert_eq!((second.outcome.status(), world.payments().await), (402, 0));
}

async fn whoever_records_first_wins_over_who_began_first<D: Door>() {
    let world = Arc::new(World::<D>::with(unseen(), None).await);
    let (let_go, first) = hold(&world, 201).await;
    // Nobody has looked, so nobody waits: the second runs to its end while the first is at work.
    assert!(is_stored(&world.pay("k", 201).await));
    let_go.add_permits(1);
    assert!(!first.await.unwrap());
    let other = world.run("k", |_, _| async { Ok(answer(500)) }).await;
    assert!(is_replayed(&other), "{other:?}");
    assert_eq!((world.payments().await, world.events().await, world.records().await), (1, 1, 1));
    let mismatch = hapax_core::RequestParts { body: b"other", ..Default::default() };
    let work = |_| async { Ok::<_, InTransactionError>(answer(201)) };
    let refused = world.hapax.once(crate::reference::operation("k"), &mismatch, work).await;
    let is_mismatch =
        matches!(refused, Err(InTransactionError::Refused(TransactionAnswer::Mismatch(_))));
    assert!(is_mismatch, "{refused:?}");
}
