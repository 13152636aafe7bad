//! Messages that have to wait for their turn.

use std::{sync::Arc, time::Duration};

use hapax_core::inbox::{First, Inbox, Message, MessageAnswer, MessageEnd, Proof, Waiting};

use super::{
    InboxBackend,
    scene::{InboxScene, WEEK, message, version},
};

const HOUR: Duration = Duration::from_secs(3600);

async fn waiting<B: InboxBackend>(scene: &InboxScene<B>, key: Option<&str>) -> Vec<Arc<Message>> {
    let waiting = Waiting { key: key.map(str::to_owned), first: 1, patience: HOUR, limit: 10 };
    scene.inbox.waiting(&scene.consumer, &waiting).await.unwrap()
}

async fn hold<B: InboxBackend>(scene: &InboxScene<B>, message: Message) {
    scene.hold(message).await;
}

fn ids(messages: &[Arc<Message>]) -> Vec<&str> {
    messages.iter().map(|message| message.id.as_str()).collect()
}

/// The next message of the key is told.
pub async fn a_key_comes_to_the_version_of_what_was_acted_on<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let first = scene.end(version("k", 1), Proof::Record, MessageEnd::Done).await.unwrap();
    assert_eq!((first.last, first.held), (None, 0));
    let second = scene.end(version("k", 5), Proof::Record, MessageEnd::Done).await.unwrap();
    assert_eq!(second.last, Some(1));
    let other = scene.end(version("other", 1), Proof::Record, MessageEnd::Done).await.unwrap();
    assert_eq!(other.last, None);
    let third = scene.end(version("k", 3), Proof::Record, MessageEnd::Done).await.unwrap();
    assert_eq!(third.last, Some(5));
    let fourth = scene.end(version("k", 4), Proof::Record, MessageEnd::Done).await.unwrap();
    assert_eq!(fourth.last, Some(5), "a key never goes back");
}

/// It is final all the same.
pub async fn what_was_passed_over_does_not_move_its_key<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.end(version("k", 1), Proof::Record, MessageEnd::Done).await.unwrap();
    scene.end(version("k", 9), Proof::Record, MessageEnd::Passed).await.unwrap();
    assert_eq!(scene.answer(version("k", 9)).await, MessageAnswer::Duplicate);
    let next = scene.end(version("k", 2), Proof::Record, MessageEnd::Done).await.unwrap();
    assert_eq!(next.last, Some(1));
}

/// Two of them at once would not know which is first.
pub async fn while_one_message_of_a_key_is_acted_on_another_is_busy<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let First { transaction, .. } = scene.first(version("k", 1), Proof::Record).await;
    assert_eq!(scene.answer(version("k", 2)).await, MessageAnswer::Busy);
    scene.inbox.take_back(transaction).await;
    scene.end(version("k", 2), Proof::Record, MessageEnd::Done).await.unwrap();
}

/// The gap closes, and what was held follows.
pub async fn a_held_message_is_final_for_the_broker_and_comes_when_its_turn_is<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    hold(&scene, version("k", 2)).await;
    assert_eq!(scene.answer(version("k", 2)).await, MessageAnswer::Duplicate);
    assert!(waiting(&scene, None).await.is_empty());
    let first = scene.end(version("k", 1), Proof::Record, MessageEnd::Done).await.unwrap();
    assert_eq!(first.held, 1);
    assert_eq!(ids(&waiting(&scene, Some("k")).await), ["k-2"]);
    assert!(waiting(&scene, Some("other")).await.is_empty());
    scene.end(version("k", 2), Proof::Held, MessageEnd::Done).await.unwrap();
    assert!(waiting(&scene, None).await.is_empty());
    assert_eq!(scene.answer(version("k", 2)).await, MessageAnswer::Duplicate);
    assert_eq!(scene.effects().await, ["k-1", "k-2"]);
}

/// Byte for byte.
pub async fn a_held_message_comes_as_it_was<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    hold(&scene, version("k", 1)).await;
    assert_eq!(*waiting(&scene, None).await[0], version("k", 1));
}

/// Its handler may fail.
pub async fn a_held_message_that_was_taken_back_is_still_held<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    hold(&scene, version("k", 1)).await;
    let First { transaction, .. } = scene.first(version("k", 1), Proof::Held).await;
    scene.inbox.take_back(transaction).await;
    assert_eq!(ids(&waiting(&scene, None).await), ["k-1"]);
}

/// Whoever comes second finds nothing held.
pub async fn a_held_message_is_acted_on_once<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    hold(&scene, version("k", 1)).await;
    scene.end(version("k", 1), Proof::Held, MessageEnd::Done).await.unwrap();
    assert_eq!(scene.answer_to(version("k", 1), Proof::Held).await, MessageAnswer::Duplicate);
    assert_eq!(scene.effects().await, ["k-1"]);
}

/// Patience has an end.
pub async fn a_message_held_too_long_is_asked_for_out_of_turn<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    hold(&scene, version("k", 5)).await;
    scene.pass(HOUR - Duration::from_secs(60)).await;
    assert!(waiting(&scene, None).await.is_empty());
    scene.pass(Duration::from_secs(60)).await;
    assert_eq!(ids(&waiting(&scene, None).await), ["k-5"]);
}

/// What is behind it waits for it.
pub async fn only_the_lowest_of_a_key_is_asked_for<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    for number in [7, 5, 6] {
        hold(&scene, version("k", number)).await;
    }
    hold(&scene, version("other", 3)).await;
    scene.pass(HOUR).await;
    let mut found = waiting(&scene, None).await;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(ids(&found), ["k-5", "other-3"]);
}

/// What failed for good is not waited for.
pub async fn a_failure_moves_its_key_on<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.end(version("k", 1), Proof::Record, MessageEnd::Failed("no".to_owned())).await.unwrap();
    let next = scene.end(version("k", 2), Proof::Record, MessageEnd::Done).await.unwrap();
    assert_eq!(next.last, Some(1));
}

/// Its effect is still to come.
pub async fn what_is_held_is_not_forgotten<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    hold(&scene, version("k", 2)).await;
    scene.deliver(message("m-1")).await;
    scene.pass(WEEK).await;
    assert_eq!(scene.inbox.forget(10).await.unwrap(), 1);
    assert_eq!(scene.answer(version("k", 2)).await, MessageAnswer::Duplicate);
}
