//! What commits, and what does not.

use std::time::Duration;

use hapax_core::{
    Event, Policy, Recovery, RequestParts, RetainFrom, Retention, Timestamp,
    outbox::{OutboxLog as _, Ringer, memory},
    transaction::TransactionAnswer,
};
use hapax_engine::transactional::{Fate, InTransactionError, TransactionOptions, Transactional};
use tokio::time::timeout;

use super::{
    doors::Door,
    through_every_door,
    world::{World, answer, is_replayed, is_stored, pay},
};
use crate::reference::operation;

through_every_door!(
    the_writes_the_event_and_the_answer_commit_together,
    a_failure_is_kept_without_its_writes_and_its_event,
    an_answer_that_says_try_again_leaves_nothing,
    an_error_a_panic_and_a_timeout_leave_nothing_and_free_the_key,
    another_request_under_the_key_is_refused,
    work_that_broke_its_transaction_commits_nothing,
    work_that_keeps_its_transaction_commits_nothing,
    an_outcome_is_kept_for_longer_than_a_month,
    retention_from_completion_counts_from_the_end,
    events_of_one_transaction_keep_their_order,
    a_commit_that_emitted_rings_and_nothing_else_does,
);

async fn the_writes_the_event_and_the_answer_commit_together<D: Door>() {
    let world = World::<D>::new().await;
    let first = world.pay("k", 201).await;
    assert!(is_stored(&first), "{first:?}");
    assert_eq!((world.payments().await, world.events().await, world.records().await), (1, 1, 1));
    let second = world.pay("k", 201).await;
    assert!(is_replayed(&second), "{second:?}");
    assert_eq!(first.unwrap().outcome, second.unwrap().outcome);
    assert_eq!((world.payments().await, world.events().await, world.calls()), (1, 1, 1));
}

async fn a_commit_that_emitted_rings_and_nothing_else_does<D: Door>() {
    let mut world = World::<D>::new().await;
    let outbox = memory::Outbox::new(|| Timestamp::from_micros(1));
    let database = D::open(&world.postgres.config(), None);
    let database = D::rings(database, Ringer::of(outbox.clone()));
    world.hapax = Transactional::new(database, TransactionOptions::default());
    let heard = async || timeout(Duration::ZERO, outbox.rung()).await.is_ok();
    for status in [402, 500] {
        world.pay(&format!("k{status}"), status).await.unwrap();
        assert!(!heard().await, "{status} was heard");
    }
    assert!(is_stored(&world.pay("k", 201).await));
    assert!(heard().await);
    assert!(is_replayed(&world.pay("k", 201).await));
    assert!(!heard().await);
}

async fn a_failure_is_kept_without_its_writes_and_its_event<D: Door>() {
    let world = World::<D>::new().await;
    let first = world.pay("k", 402).await;
    assert!(is_stored(&first), "{first:?}");
    assert_eq!((world.payments().await, world.events().await, world.records().await), (0, 0, 1));
    let second = world.pay("k", 402).await.unwrap();
    assert!(matches!(second.fate, Fate::Replayed { .. }));
    assert_eq!((second.outcome.status(), world.calls()), (402, 1));
}

async fn an_answer_that_says_try_again_leaves_nothing<D: Door>() {
    let world = World::<D>::new().await;
    for status in [500, 503, 429] {
        let answered = world.pay("k", status).await.unwrap();
        assert_eq!((answered.fate, answered.outcome.status()), (Fate::RolledBack, status));
        assert_eq!(
            (world.payments().await, world.events().await, world.records().await),
            (0, 0, 0)
        );
    }
    assert!(is_stored(&world.pay("k", 201).await));
}

async fn an_error_a_panic_and_a_timeout_leave_nothing_and_free_the_key<D: Door>() {
    let limit = Duration::from_millis(500);
    let options = TransactionOptions { timeout: limit, ..TransactionOptions::default() };
    let world = World::<D>::with(options, None).await;
    let failed = world.run("k", |mut tx, key| async move {
        pay::<D>(&mut tx, &key).await?;
        Err("out of paper".into())
    });
    assert!(
        matches!(failed.await, Err(InTransactionError::Failed(error)) if error.to_string() == "out of paper")
    );
    let panicked = world.run("k", |mut tx, key| async move {
        pay::<D>(&mut tx, &key).await?;
        panic!("as a test does")
    });
    assert!(matches!(panicked.await, Err(InTransactionError::Panicked)));
    let timed_out = world.run("k", |mut tx, key| async move {
        pay::<D>(&mut tx, &key).await?;
        D::write(&mut tx, "SELECT pg_sleep(600)".to_owned()).await?;
        Ok(answer(201))
    });
    assert!(matches!(timed_out.await, Err(InTransactionError::TimedOut { .. })));
    assert_eq!((world.payments().await, world.events().await, world.records().await), (0, 0, 0));
    assert!(is_stored(&world.pay("k", 201).await));
}

async fn another_request_under_the_key_is_refused<D: Door>() {
    let world = World::<D>::new().await;
    assert!(is_stored(&world.pay("k", 201).await));
    let request = RequestParts { body: b"{\"amount\":999}", ..RequestParts::default() };
    let work = |_| async { Ok::<_, InTransactionError>(answer(201)) };
    let refused = world.hapax.once(operation("k"), &request, work).await;
    assert!(
        matches!(refused, Err(InTransactionError::Refused(TransactionAnswer::Mismatch(_)))),
        "{refused:?}"
    );
}

async fn work_that_broke_its_transaction_commits_nothing<D: Door>() {
    let world = World::<D>::new().await;
    let broken = world.run("k", |mut tx, key| async move {
        pay::<D>(&mut tx, &key).await?;
        let refused =
            D::write(&mut tx, "INSERT INTO payments (key) VALUES (NULL)".to_owned()).await;
        assert!(refused.is_err());
        Ok(answer(201))
    });
    assert!(matches!(broken.await, Err(InTransactionError::Store(_))));
    assert_eq!((world.payments().await, world.records().await), (0, 0));
    assert!(is_stored(&world.pay("k", 201).await));
}

async fn work_that_keeps_its_transaction_commits_nothing<D: Door>() {
    let world = World::<D>::new().await;
    let (release, released) = tokio::sync::watch::channel(false);
    let kept = world.run("k", move |mut tx, key| {
        let mut released = released.clone();
        async move {
            pay::<D>(&mut tx, &key).await?;
            tokio::spawn(async move {
                let _ = released.wait_for(|released| *released).await;
                drop(tx);
            });
            Ok(answer(201))
        }
    });
    assert!(matches!(kept.await, Err(InTransactionError::Kept)));
    release.send_replace(true);
    let again = world.pay("k", 201).await;
    assert!(is_stored(&again), "{again:?}");
    assert_eq!((world.payments().await, world.events().await), (1, 1));
}

async fn an_outcome_is_kept_for_longer_than_a_month<D: Door>() {
    let world = World::<D>::with(kept_for(30, RetainFrom::Creation), None).await;
    assert!(is_stored(&world.pay("k", 201).await));
    assert!(is_replayed(&world.pay("k", 201).await));
    assert_eq!((world.payments().await, world.events().await), (1, 1));
}

async fn retention_from_completion_counts_from_the_end<D: Door>() {
    let world = World::<D>::with(kept_for(1, RetainFrom::Completion), None).await;
    let slow = world.run("k", |mut tx, key| async move {
        pay::<D>(&mut tx, &key).await?;
        D::write(&mut tx, "SELECT pg_sleep(0.2)".to_owned()).await?;
        Ok(answer(201))
    });
    assert!(is_stored(&slow.await));
    let late = "SELECT (expires_at - created_at - 86400000000) / 1000 FROM hapax.operations";
    assert!(world.postgres.number(late).await >= 200);
}

async fn events_of_one_transaction_keep_their_order<D: Door>() {
    let world = World::<D>::new().await;
    let emitted = world.run("k", |mut tx, _| async move {
        for (key, at) in [("b", 1), ("a", 2), ("b", 3), ("a", 4)] {
            let event = Event::new("t", key, at.to_string()).unwrap();
            D::emit(&mut tx, event.header("trace", "a \"quoted\" one").unwrap());
        }
        Ok(answer(201))
    });
    assert!(is_stored(&emitted.await));
    let told = "SELECT key || convert_from(payload, 'UTF8') || (headers ->> 'trace') FROM hapax.outbox ORDER BY position";
    let rows = world.postgres.client().await.query(told, &[]).await.unwrap();
    let told: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let expected = ["a2", "a4", "b1", "b3"].map(|event| format!("{event}a \"quoted\" one"));
    assert_eq!(told, expected);
}

fn kept_for(days: u64, from: RetainFrom) -> TransactionOptions {
    let window = Duration::from_secs(days * 24 * 60 * 60);
    let retention = Retention { window, from, tombstone: Duration::ZERO };
    let lease = Duration::from_secs(30);
    let policy = Policy::new(lease, retention, Recovery::Hold).unwrap();
    TransactionOptions { policy, ..TransactionOptions::default() }
}
