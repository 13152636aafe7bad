//! Retiring: what nobody needs any more is removed, and nothing else.

use hapax_core::outbox::{Hold, OutboxAdmin, OutboxLog, Selection, Start, Topics};

use super::{
    OutboxBackend,
    scene::{OutboxScene, SINK, payloads},
};

/// Retires until there is nothing more to; how many events went.
async fn retire_all<B: OutboxBackend>(scene: &OutboxScene<B>) -> u64 {
    let mut events = 0;
    loop {
        let retired = scene.outbox.retire(1000).await.unwrap();
        if retired.events == 0 {
            return events;
        }
        events += retired.events;
    }
}

/// What would be read from the beginning.
async fn kept<B: OutboxBackend>(scene: &OutboxScene<B>) -> Vec<String> {
    scene.register("curious", Topics::all(), Start::Beginning).await;
    let kept = payloads(&scene.relay_of("curious", 9).await.read().await);
    scene.outbox.remove("curious").await.unwrap();
    kept
}

/// Once every destination has an event behind it, it is removed.
pub async fn what_is_final_for_every_destination_is_removed<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    scene.register("other", Topics::parse(["unwanted"]).unwrap(), Start::Beginning).await;
    for payload in ["1", "2"] {
        scene.emit("k", payload).await;
    }
    scene.backend.turn_over().await;
    scene.emit("k", "3").await;
    scene.relay(1).await.drain().await;
    assert_eq!(retire_all(&scene).await, 0, "the other one has not looked yet");
    scene.relay_of("other", 1).await.drain().await;
    scene.emit("k", "4").await;
    assert!(retire_all(&scene).await >= 2);
    let kept = kept(&scene).await;
    assert!(!kept.contains(&"1".to_owned()) && kept.contains(&"4".to_owned()), "{kept:?}");
}

/// What one destination has not acknowledged stays, for however many others it is final.
pub async fn what_one_destination_still_needs_stays<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    scene.register("slow", Topics::all(), Start::Beginning).await;
    scene.emit("k", "1").await;
    scene.emit("l", "2").await;
    scene.backend.turn_over().await;
    scene.relay(1).await.drain().await;
    let mut slow = scene.relay_of("slow", 1).await;
    let read = slow.read().await;
    slow.acknowledge(&read[1..]).await;
    retire_all(&scene).await;
    let again = scene.relay_of("slow", 1).await.read().await;
    assert_eq!(payloads(&again), ["1"], "the other lane is final");
}

/// Where nobody has registered, everything is kept for whoever does.
pub async fn without_destinations_everything_stays<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::empty().await;
    scene.emit("k", "1").await;
    scene.backend.turn_over().await;
    scene.emit("k", "2").await;
    assert_eq!(retire_all(&scene).await, 0);
    assert_eq!(kept(&scene).await, ["1", "2"]);
}

/// A parked event keeps nothing from being removed, and can still be sent again.
pub async fn a_parked_event_keeps_nothing_and_outlives_its_segment<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    scene.emit("k", "bad").await;
    let read = relay.read().await;
    assert!(relay.park(&read[0], Hold::Tail).await);
    scene.backend.turn_over().await;
    scene.emit("other", "2").await;
    relay.drain().await;
    assert!(retire_all(&scene).await >= 1);
    scene.outbox.replay(SINK, Selection::All).await.unwrap();
    let replayed = relay.read().await;
    assert_eq!(replayed.len(), 1);
    assert_eq!(replayed[0].event, read[0].event);
}

/// A retirement is nothing to a reader, whether it goes on or starts.
pub async fn reading_goes_on_after_a_retirement<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    for round in 0..5 {
        scene.emit("k", &round.to_string()).await;
        assert_eq!(relay.drain().await, [round.to_string()]);
        scene.backend.turn_over().await;
        retire_all(&scene).await;
    }
    scene.outbox.leave(SINK, relay.owner).await.unwrap();
    scene.emit("k", "last").await;
    assert_eq!(scene.relay(2).await.drain().await, ["last"]);
}
