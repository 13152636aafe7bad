//! One effect for each message.

use std::sync::Arc;

use hapax_core::{
    Event, TransactionError,
    inbox::{First, Inbox, MessageAnswer, MessageEnd, MessageEntered, Proof},
};
use tokio::task::JoinSet;

use super::{
    InboxBackend,
    scene::{InboxScene, WEEK, message, saying, scope},
};

/// Whoever comes later finds that it was done.
pub async fn the_first_delivery_is_acted_on_and_later_ones_are_not<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.deliver(message("m-1")).await;
    for _ in 0..2 {
        assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
    }
    assert_eq!(scene.effects().await, ["m-1"]);
}

/// Effect and record vanish together.
pub async fn what_was_taken_back_is_the_first_again<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let First { mut transaction, .. } = scene.first(message("m-1"), Proof::Record).await;
    B::act(&mut transaction, "m-1").await;
    scene.inbox.take_back(transaction).await;
    assert!(scene.effects().await.is_empty());
    scene.deliver(message("m-1")).await;
    assert_eq!(scene.effects().await, ["m-1"]);
}

/// A handler that vanished leaves neither effect nor record.
pub async fn a_transaction_that_is_dropped_leaves_nothing<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let First { mut transaction, .. } = scene.first(message("m-1"), Proof::Record).await;
    B::act(&mut transaction, "m-1").await;
    drop(transaction);
    // The server notices that the connection is gone in its own time.
    loop {
        match scene.enter(message("m-1")).await {
            MessageEntered::First(First { transaction, .. }) => {
                scene.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
                break;
            }
            MessageEntered::Answer(answer) => assert_eq!(answer, MessageAnswer::Busy),
        }
        tokio::task::yield_now().await;
    }
    assert!(scene.effects().await.is_empty());
}

/// Names are told apart by consumer.
pub async fn another_consumer_has_messages_of_its_own<B: InboxBackend>() {
    let mut scene = InboxScene::<B>::new().await;
    scene.deliver(message("m-1")).await;
    scene.consumer = scene.inbox.enlist(&scope("printer"), WEEK).await.unwrap();
    scene.deliver(message("m-1")).await;
    assert_eq!(scene.effects().await, ["m-1", "m-1"]);
}

/// The number of a consumer is for good.
pub async fn a_consumer_that_comes_back_is_the_same<B: InboxBackend>() {
    let mut scene = InboxScene::<B>::new().await;
    scene.deliver(message("m-1")).await;
    scene.inbox = scene.backend.open().await;
    let again = scene.inbox.enlist(&scope("mailer"), WEEK).await.unwrap();
    assert_eq!(again, scene.consumer);
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
}

/// One of the two is not what its name says.
pub async fn other_content_under_a_used_name_is_a_conflict<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.deliver(message("m-1")).await;
    assert_eq!(scene.answer(saying("m-1", "goodbye")).await, MessageAnswer::Conflict);
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
}

/// Nobody waits for another delivery, and nobody takes it for done before it is.
pub async fn while_one_delivery_is_acted_on_another_is_busy<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let First { transaction, .. } = scene.first(message("m-1"), Proof::Record).await;
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Busy);
    scene.inbox.take_back(transaction).await;
    scene.deliver(message("m-1")).await;
}

/// However many come at once.
pub async fn of_many_deliveries_at_once_one_is_acted_on<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let arrival = Arc::new(scene.arrival(message("m-1"), Proof::Record));
    let mut deliveries = JoinSet::new();
    for _ in 0..16 {
        let (inbox, arrival) = (scene.inbox.clone(), Arc::clone(&arrival));
        deliveries.spawn(async move {
            loop {
                match inbox.enter(&arrival).await {
                    Ok(MessageEntered::First(First { mut transaction, .. })) => {
                        B::act(&mut transaction, "m-1").await;
                        inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
                    }
                    Ok(MessageEntered::Answer(MessageAnswer::Busy))
                    | Err(TransactionError::Conflict(_) | TransactionError::Taken(_)) => {}
                    Ok(MessageEntered::Answer(answer)) => {
                        assert_eq!(answer, MessageAnswer::Duplicate);
                        return;
                    }
                    Err(error) => panic!("{error:?}"),
                }
                tokio::task::yield_now().await;
            }
        });
    }
    deliveries.join_all().await;
    assert_eq!(scene.effects().await, ["m-1"]);
}

/// Side by side, each has its effect.
pub async fn messages_of_different_names_do_not_disturb_each_other<B: InboxBackend>() {
    let scene = Arc::new(InboxScene::<B>::new().await);
    let mut deliveries = JoinSet::new();
    for number in 0..8 {
        let scene = Arc::clone(&scene);
        deliveries.spawn(async move {
            let name = format!("m-{number}");
            loop {
                let MessageEntered::First(First { mut transaction, .. }) =
                    scene.enter(message(&name)).await
                else {
                    tokio::task::yield_now().await;
                    continue;
                };
                B::act(&mut transaction, &name).await;
                return scene.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
            }
        });
    }
    deliveries.join_all().await;
    assert_eq!(scene.effects().await.len(), 8);
}

/// It is not run again, and says why.
pub async fn a_stored_failure_answers_every_later_delivery<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let no = "there is no such address";
    scene.end(message("m-1"), Proof::Record, MessageEnd::Failed(no.to_owned())).await.unwrap();
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Failed(no.to_owned()));
    assert_eq!(scene.answer(saying("m-1", "goodbye")).await, MessageAnswer::Conflict);
}

/// A handler may say that something happened.
pub async fn events_are_published_with_the_effect_or_not_at_all<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let event = || Event::new("mail.sent", "k", "{}").unwrap();
    let First { mut transaction, .. } = scene.first(message("m-1"), Proof::Record).await;
    B::emit(&mut transaction, event());
    scene.inbox.take_back(transaction).await;
    assert_eq!(scene.backend.events().await, 0);
    let First { mut transaction, .. } = scene.first(message("m-1"), Proof::Record).await;
    B::emit(&mut transaction, event());
    scene.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
    assert_eq!(scene.backend.events().await, 1);
}
