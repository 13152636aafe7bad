//! How far a partition has come, kept with the effects.

use hapax_core::inbox::{First, Inbox, MessageAnswer, MessageEnd};

use super::{
    InboxBackend,
    scene::{InboxScene, WEEK, at, of, scope, under},
};

/// Whoever takes it is told where.
pub async fn a_partition_goes_on_where_it_was_left<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let taken = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap();
    assert_eq!(taken.next, None);
    for offset in [3, 4, 9] {
        scene.end(at(0, offset), under(taken.fence), MessageEnd::Done).await.unwrap();
    }
    let again = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap();
    assert_eq!(again.next, Some(10));
    assert!(again.fence > taken.fence);
    assert_eq!(scene.effects().await, ["0-3", "0-4", "0-9"]);
}

/// There is no window: however old it is.
pub async fn what_lies_behind_the_place_is_not_acted_on_again<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let fence = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap().fence;
    scene.end(at(0, 4), under(fence), MessageEnd::Done).await.unwrap();
    scene.pass(WEEK * 50).await;
    for offset in [0, 4] {
        assert_eq!(scene.answer_to(at(0, offset), under(fence)).await, MessageAnswer::Duplicate);
    }
}

/// Effect and place move together.
pub async fn what_was_taken_back_does_not_move_the_place<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let fence = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap().fence;
    let First { mut transaction, .. } = scene.first(at(0, 4), under(fence)).await;
    B::act(&mut transaction, "0-4").await;
    scene.inbox.take_back(transaction).await;
    scene.end(at(0, 4), under(fence), MessageEnd::Done).await.unwrap();
    assert_eq!(scene.effects().await, ["0-4"]);
}

/// Neither what is new nor what is old.
pub async fn whoever_lost_its_partition_can_finish_nothing<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let old = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap().fence;
    scene.end(at(0, 1), under(old), MessageEnd::Done).await.unwrap();
    let new = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap().fence;
    for offset in [1, 2] {
        assert_eq!(scene.answer_to(at(0, offset), under(old)).await, MessageAnswer::Fenced);
    }
    scene.end(at(0, 2), under(new), MessageEnd::Done).await.unwrap();
    assert_eq!(scene.effects().await, ["0-1", "0-2"]);
}

/// They do not disturb each other.
pub async fn partitions_and_consumers_have_places_of_their_own<B: InboxBackend>() {
    let mut scene = InboxScene::<B>::new().await;
    for partition in [0, 1] {
        let taken = scene.inbox.take(&scene.consumer, &of(partition)).await.unwrap();
        assert_eq!(taken.next, None);
        scene.end(at(partition, 7), under(taken.fence), MessageEnd::Done).await.unwrap();
    }
    scene.consumer = scene.inbox.enlist(&scope("printer"), WEEK).await.unwrap();
    let taken = scene.inbox.take(&scene.consumer, &of(0)).await.unwrap();
    assert_eq!(taken.next, None);
    scene.end(at(0, 7), under(taken.fence), MessageEnd::Done).await.unwrap();
    assert_eq!(scene.effects().await, ["0-7", "0-7", "1-7"]);
}
