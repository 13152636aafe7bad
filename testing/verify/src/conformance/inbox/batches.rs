//! Several messages in one transaction: all of them, or none.

use std::sync::Arc;

use hapax_core::{
    Event, TransactionError,
    inbox::{
        First, Inbox, Message, MessageAnswer, MessageArrival, MessageEnd, MessageEntered, Proof,
    },
};
use tokio::task::JoinSet;

use super::{
    InboxBackend,
    scene::{InboxScene, Tx, WEEK, at, message, of, saying, scope, under, version},
};

impl<B: InboxBackend> InboxScene<B> {
    async fn enter_all<const N: usize>(&self, messages: [Message; N]) -> Option<Tx<B>> {
        let arrivals = messages.map(|message| self.arrival(message, Proof::Record));
        self.inbox.enter_all(&arrivals).await.unwrap()
    }

    /// Acts on messages that nobody has acted on, each with an effect of its name.
    async fn deliver_all<const N: usize>(&self, ids: [&str; N]) {
        let mut transaction = self.enter_all(ids.map(message)).await.expect("they are the first");
        for id in ids {
            B::act(&mut transaction, id).await;
        }
        self.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
    }
}

/// One commit for all of them, and each is remembered.
pub async fn several_messages_are_acted_on_in_one_transaction<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.deliver_all(["m-1", "m-2", "m-3", "m-4"]).await;
    assert_eq!(scene.effects().await, ["m-1", "m-2", "m-3", "m-4"]);
    for id in ["m-1", "m-2", "m-3", "m-4"] {
        assert_eq!(scene.answer(message(id)).await, MessageAnswer::Duplicate);
        assert_eq!(scene.answer(saying(id, "other")).await, MessageAnswer::Conflict);
    }
    scene.deliver_all(["m-5"]).await;
    assert_eq!(scene.answer(message("m-5")).await, MessageAnswer::Duplicate);
    assert!(scene.enter_all([]).await.is_none());
}

/// Whoever failed in the middle takes the others back with it.
pub async fn a_batch_that_was_taken_back_is_the_first_again<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let mut transaction = scene.enter_all(["m-1", "m-2", "m-3"].map(message)).await.unwrap();
    B::act(&mut transaction, "m-1").await;
    B::act(&mut transaction, "m-2").await;
    scene.inbox.take_back(transaction).await;
    assert!(scene.effects().await.is_empty());
    scene.deliver(message("m-2")).await;
    scene.deliver_all(["m-1", "m-3"]).await;
    assert_eq!(scene.effects().await, ["m-1", "m-2", "m-3"]);
}

/// As a process leaves it that is killed before the commit.
pub async fn a_batch_that_is_dropped_leaves_nothing<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let mut transaction = scene.enter_all(["m-1", "m-2"].map(message)).await.unwrap();
    B::act(&mut transaction, "m-1").await;
    B::emit(&mut transaction, Event::new("mails", "k", "{}").unwrap());
    drop(transaction);
    let arrivals = ["m-1", "m-2"].map(|id| scene.arrival(message(id), Proof::Record));
    // The connection is closed, and the server rolls back when it notices.
    let mut transaction = loop {
        if let Some(transaction) = scene.inbox.enter_all(&arrivals).await.unwrap() {
            break transaction;
        }
        tokio::task::yield_now().await;
    };
    B::act(&mut transaction, "m-1").await;
    scene.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
    assert_eq!(scene.effects().await, ["m-1"]);
    assert_eq!(scene.backend.events().await, 0);
}

/// What somebody acted on, failed or not, is asked about alone; the others lose nothing by it.
pub async fn a_batch_with_a_message_that_was_acted_on_is_not_entered<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.deliver(message("done")).await;
    let failed = MessageEnd::Failed("no".to_owned());
    scene.end(message("failed"), Proof::Record, failed).await.unwrap();
    for old in ["done", "failed"] {
        assert!(scene.enter_all(["m-1", old, "m-2"].map(message)).await.is_none());
        assert!(scene.enter_all([message("m-1"), saying(old, "other")]).await.is_none());
    }
    scene.pass(WEEK).await;
    assert!(scene.enter_all(["m-1", "done"].map(message)).await.is_none());
    scene.deliver(message("done")).await;
    scene.deliver_all(["m-1", "m-2"]).await;
    assert_eq!(scene.effects().await, ["done", "done", "m-1", "m-2"]);
}

/// Neither with the same content nor with another.
pub async fn a_batch_with_one_message_twice_is_not_entered<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    assert!(scene.enter_all(["m-1", "m-2", "m-1"].map(message)).await.is_none());
    assert!(scene.enter_all([message("m-1"), saying("m-1", "other")]).await.is_none());
    scene.deliver_all(["m-1", "m-2"]).await;
    assert_eq!(scene.effects().await, ["m-1", "m-2"]);
}

/// Nobody waits for it.
pub async fn a_batch_with_a_message_somebody_is_at_is_not_entered<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let other = scene.backend.open().await;
    let First { mut transaction, .. } = scene.first(message("m-2"), Proof::Record).await;
    let arrivals = ["m-1", "m-2"].map(|id| scene.arrival(message(id), Proof::Record));
    assert!(other.enter_all(&arrivals).await.unwrap().is_none());
    B::act(&mut transaction, "m-2").await;
    scene.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();

    let mut transaction = scene.enter_all(["m-3", "m-4"].map(message)).await.unwrap();
    let late = other.enter(&scene.arrival(message("m-4"), Proof::Record)).await.unwrap();
    assert!(matches!(late, MessageEntered::Answer(MessageAnswer::Busy)));
    B::act(&mut transaction, "m-4").await;
    scene.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
    assert_eq!(scene.effects().await, ["m-2", "m-4"]);
}

/// A batch is one consumer's; another one has messages of its own under the same names.
pub async fn messages_of_two_consumers_are_not_taken_together<B: InboxBackend>() {
    let mut scene = InboxScene::<B>::new().await;
    let printer = scene.inbox.enlist(&scope("printer"), WEEK).await.unwrap();
    let mine = scene.arrival(message("m-1"), Proof::Record);
    let mixed = [mine.clone(), MessageArrival { consumer: printer.clone(), ..mine }];
    assert!(scene.inbox.enter_all(&mixed).await.unwrap().is_none());
    scene.deliver_all(["m-1", "m-2"]).await;
    scene.consumer = printer;
    scene.deliver_all(["m-1", "m-2"]).await;
    assert_eq!(scene.effects().await, ["m-1", "m-1", "m-2", "m-2"]);
}

/// However they overlap, and whoever has to take them one by one after all.
pub async fn of_many_batches_at_once_each_message_is_acted_on_once<B: InboxBackend>() {
    let scene = Arc::new(InboxScene::<B>::new().await);
    let mut deliveries = JoinSet::new();
    for start in 0..6 {
        let scene = Arc::clone(&scene);
        deliveries.spawn(async move {
            let ids = [0, 1, 2].map(|at| format!("m-{}", (start + at) % 6));
            let arrivals = ids.clone().map(|id| scene.arrival(message(&id), Proof::Record));
            if let Ok(Some(mut transaction)) = scene.inbox.enter_all(&arrivals).await {
                for id in &ids {
                    B::act(&mut transaction, id).await;
                }
                if scene.inbox.leave(transaction, &MessageEnd::Done).await.is_ok() {
                    return;
                }
            }
            for (id, arrival) in ids.iter().zip(&arrivals) {
                alone(&scene, id, arrival).await;
            }
        });
    }
    deliveries.join_all().await;
    assert_eq!(scene.effects().await, [0, 1, 2, 3, 4, 5].map(|at| format!("m-{at}")));
}

/// Sees to it that a message is acted on, by whomever.
async fn alone<B: InboxBackend>(scene: &InboxScene<B>, id: &str, arrival: &MessageArrival) {
    loop {
        match scene.inbox.enter(arrival).await {
            Ok(MessageEntered::First(First { mut transaction, .. })) => {
                B::act(&mut transaction, id).await;
                if scene.inbox.leave(transaction, &MessageEnd::Done).await.is_ok() {
                    return;
                }
            }
            Ok(MessageEntered::Answer(MessageAnswer::Duplicate)) => return,
            Ok(MessageEntered::Answer(MessageAnswer::Busy))
            | Err(TransactionError::Conflict(_) | TransactionError::Taken(_)) => {}
            Ok(MessageEntered::Answer(answer)) => panic!("{id}: {answer:?}"),
            Err(error) => panic!("{id}: {error:?}"),
        }
        tokio::task::yield_now().await;
    }
}

/// With the commit of all, or not at all.
pub async fn events_of_a_batch_are_published_with_all_of_it<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    for (commits, events) in [(false, 0), (true, 2)] {
        let mut transaction = scene.enter_all(["m-1", "m-2"].map(message)).await.unwrap();
        for id in ["m-1", "m-2"] {
            B::act(&mut transaction, id).await;
            B::emit(&mut transaction, Event::new("mails", id, "{}").unwrap());
        }
        if commits {
            scene.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
        } else {
            scene.inbox.take_back(transaction).await;
        }
        assert_eq!(scene.backend.events().await, events);
    }
}

/// An end is that of every message of the transaction.
pub async fn messages_of_one_transaction_end_alike<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let transaction = scene.enter_all(["m-1", "m-2"].map(message)).await.unwrap();
    scene.inbox.leave(transaction, &MessageEnd::Failed("no".to_owned())).await.unwrap();
    for id in ["m-1", "m-2"] {
        assert_eq!(scene.answer(message(id)).await, MessageAnswer::Failed("no".to_owned()));
    }
}

/// In one step, behind the last of them.
pub async fn messages_of_a_partition_move_its_place_together<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let fence = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap().fence;
    let arrivals =
        |offsets: [i64; 3]| offsets.map(|offset| scene.arrival(at(0, offset), under(fence)));
    let transaction = scene.inbox.enter_all(&arrivals([3, 4, 9])).await.unwrap().unwrap();
    scene.inbox.take_back(transaction).await;
    let mut transaction = scene.inbox.enter_all(&arrivals([3, 4, 9])).await.unwrap().unwrap();
    for effect in ["0-3", "0-4", "0-9"] {
        B::act(&mut transaction, effect).await;
    }
    scene.inbox.leave(transaction, &MessageEnd::Done).await.unwrap();
    // One of them was acted on; they are not in their order.
    for offsets in [[9, 10, 11], [12, 11, 13], [12, 12, 13]] {
        assert!(scene.inbox.enter_all(&arrivals(offsets)).await.unwrap().is_none());
    }
    assert_eq!(scene.answer_to(at(0, 9), under(fence)).await, MessageAnswer::Duplicate);
    let taken = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap();
    assert_eq!(taken.next, Some(10));
    // Somebody else has the partition now.
    assert!(scene.inbox.enter_all(&arrivals([10, 11, 12])).await.unwrap().is_none());
    assert_eq!(scene.effects().await, ["0-3", "0-4", "0-9"]);
}

/// A partition has an owner, and a place, of its own.
pub async fn messages_of_two_partitions_are_not_taken_together<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let mut fences = Vec::new();
    for partition in [0, 1] {
        fences.push(scene.inbox.take(&scene.consumer, &of(partition)).await.unwrap().fence);
    }
    assert_eq!(fences[0], fences[1]);
    let arrivals = [0, 1].map(|partition| scene.arrival(at(partition, 5), under(fences[0])));
    assert!(scene.inbox.enter_all(&arrivals).await.unwrap().is_none());
    let mixed = [scene.arrival(at(0, 5), under(fences[0])), scene.arrival(at(0, 6), Proof::Record)];
    assert!(scene.inbox.enter_all(&mixed).await.unwrap().is_none());
    scene.end(at(1, 5), under(fences[1]), MessageEnd::Done).await.unwrap();
    assert_eq!(scene.effects().await, ["1-5"]);
}

/// Whether one has its turn depends on those before it.
pub async fn messages_in_turn_are_not_taken_together<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let ordered = [version("a", 1), version("a", 2)];
    assert!(scene.enter_all(ordered.clone()).await.is_none());
    for message in ordered {
        scene.deliver(message).await;
    }
    assert_eq!(scene.effects().await, ["a-1", "a-2"]);
}
