//! For how long what became of a message is remembered.

use std::time::Duration;

use hapax_core::{
    clock::ClockMark,
    inbox::{Inbox, MessageAnswer, MessageEnd, Proof},
};

use super::{
    InboxBackend,
    scene::{InboxScene, WEEK, message, saying, scope},
};

const MINUTE: Duration = Duration::from_secs(60);

/// Whether or not it was forgotten by then.
pub async fn what_is_past_its_retention_is_the_first_again<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.deliver(message("m-1")).await;
    scene.pass(WEEK - MINUTE).await;
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
    scene.pass(MINUTE).await;
    scene.deliver(saying("m-1", "goodbye")).await;
    assert_eq!(scene.answer(saying("m-1", "goodbye")).await, MessageAnswer::Duplicate);
    assert_eq!(scene.effects().await, ["m-1", "m-1"]);
}

/// Its reason is forgotten with it.
pub async fn a_failure_past_its_retention_may_be_tried_again<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.end(message("m-1"), Proof::Record, MessageEnd::Failed("no".to_owned())).await.unwrap();
    scene.pass(WEEK).await;
    scene.deliver(message("m-1")).await;
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
}

/// Each consumer's own retention counts.
pub async fn what_is_past_its_retention_is_forgotten_and_nothing_else<B: InboxBackend>() {
    let mut scene = InboxScene::<B>::new().await;
    scene.deliver(message("old")).await;
    scene.inbox.missed(&scene.consumer, &message("tried").id).await.unwrap();
    scene.pass(WEEK / 2).await;
    scene.deliver(message("young")).await;
    let mailer = scene.consumer.clone();
    scene.consumer = scene.inbox.enlist(&scope("patient"), WEEK * 2).await.unwrap();
    scene.deliver(message("old")).await;
    scene.pass(WEEK / 2).await;
    assert_eq!(scene.inbox.forget(1000).await.unwrap(), 2, "a record, and a count of attempts");
    assert_eq!(scene.inbox.forget(1000).await.unwrap(), 0);
    assert_eq!(scene.answer(message("old")).await, MessageAnswer::Duplicate, "of the patient one");
    scene.consumer = mailer;
    assert_eq!(scene.answer(message("young")).await, MessageAnswer::Duplicate);
    assert_eq!(scene.inbox.missed(&scene.consumer, &message("tried").id).await.unwrap(), 1);
}

/// However much there is.
pub async fn forgetting_keeps_to_its_limit<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    for number in 0..5 {
        scene.deliver(message(&format!("m-{number}"))).await;
    }
    scene.pass(WEEK).await;
    let mut gone = Vec::new();
    for _ in 0..4 {
        gone.push(scene.inbox.forget(2).await.unwrap());
    }
    assert_eq!(gone, [2, 2, 1, 0]);
}

/// The retention is the consumer's, not the record's.
pub async fn a_new_retention_counts_for_what_was_there_before<B: InboxBackend>() {
    let mut scene = InboxScene::<B>::new().await;
    scene.deliver(message("m-1")).await;
    scene.consumer = scene.inbox.enlist(&scope("mailer"), WEEK * 2).await.unwrap();
    scene.pass(WEEK).await;
    assert_eq!(scene.inbox.forget(10).await.unwrap(), 0);
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
    scene.consumer = scene.inbox.enlist(&scope("mailer"), WEEK).await.unwrap();
    assert_eq!(scene.inbox.forget(10).await.unwrap(), 1);
}

/// A clock that jumped makes no message the first again, and forgets none, until it is trusted there.
pub async fn nothing_is_forgotten_beyond_where_the_clock_is_trusted<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.deliver(message("m-1")).await;
    let reading = scene.inbox.clock().await.unwrap();
    assert_eq!(reading.mark, None);
    let (steady_since, seen_at) = (reading.now, reading.now);
    let mark = |trusted_until| ClockMark { steady_since, seen_at, trusted_until };
    scene.inbox.keep_clock(mark(seen_at.plus(MINUTE))).await.unwrap();
    scene.pass(WEEK * 2).await;
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
    assert_eq!(scene.inbox.forget(1000).await.unwrap(), 0);
    let trusted = mark(seen_at.plus(WEEK));
    scene.inbox.keep_clock(trusted).await.unwrap();
    assert_eq!(scene.inbox.clock().await.unwrap().mark, Some(trusted));
    assert_eq!(scene.inbox.forget(1000).await.unwrap(), 1);
    scene.deliver(message("m-1")).await;
}
