//! Reading: everything that was committed, in order, as it was written, and again if nobody said
//! that it was sent.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use hapax_core::{
    limits::{EVENT_NAME_BYTES_MAX, EVENT_PAYLOAD_BYTES_MAX},
    outbox::{Event, EventId, Lane, OutboxAdmin, OutboxLog, ReadLimits},
};

use super::{
    OutboxBackend,
    scene::{OutboxScene, SINK, SPAN, event, payloads},
};

/// An event comes as it was emitted, by the lane of its topic and key.
pub async fn an_event_comes_as_it_was_emitted<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let long = "\u{e9}".repeat(EVENT_NAME_BYTES_MAX / 2);
    let payload: Bytes = (0..=250).cycle().take(EVENT_PAYLOAD_BYTES_MAX).collect();
    let emitted = [
        Event::new("t", "k", "{}").unwrap(),
        Event::new("t", "k", Bytes::new()).unwrap().header("a", "").unwrap(),
        Event::new(&*long, "k\n'\"\\", payload)
            .and_then(|event| event.content_type("application/octet-stream"))
            .and_then(|event| event.header("trace \"id\"", "\u{1f600}\n\\"))
            .and_then(|event| event.header("b", "x".repeat(16_000)))
            .unwrap(),
    ];
    scene.backend.emit(emitted.to_vec()).await;
    let mut relay = scene.relay(1).await;
    let read = relay.read().await;
    assert_eq!(read.len(), emitted.len());
    for event in &emitted {
        let found = read.iter().find(|read| read.event.payload == *event.payload());
        let stored = &found.expect("it was emitted").event;
        assert_eq!((&*stored.topic, &*stored.key), (event.topic(), event.key()));
        assert_eq!(stored.content_type, event.payload_type());
        let mut headers = event.headers().to_vec();
        headers.sort_by(|one, other| one.name.cmp(&other.name));
        assert!(stored.headers == headers, "headers come in order of their names");
        assert_eq!(stored.lane, Lane::of(event.topic(), event.key()));
        assert!(stored.position > 0 && stored.at.as_micros() > 0);
    }
    let mut ids: Vec<EventId> = read.iter().map(|read| read.event.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), emitted.len(), "every event has an id of its own");
}

/// Events of one key come in the order of their commits, those of one transaction as emitted.
pub async fn events_of_a_key_come_in_the_order_of_their_commits<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    scene.emit("a", "1").await;
    scene.backend.emit(vec![event("t", "a", "2"), event("t", "a", "3")]).await;
    assert_eq!(payloads(&relay.read().await), ["1", "2", "3"]);
    scene.emit("a", "4").await;
    assert_eq!(payloads(&relay.read().await), ["4"], "nothing comes twice");
}

/// A rolled back event never comes, and does not keep what comes after it from being final.
pub async fn what_was_rolled_back_never_comes_and_is_in_nobodys_way<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    scene.emit("a", "1").await;
    scene.backend.roll_back(vec![event("t", "a", "never"), event("t", "b", "never")]).await;
    scene.emit("a", "2").await;
    assert_eq!(relay.drain().await, ["1", "2"]);
    let lag = scene.outbox.lag(SINK).await.unwrap().expect("it is registered");
    assert_eq!(lag.events(), 0);
}

/// While many emit at once, everything comes once, and each key in the order of its emitter.
pub async fn concurrent_emitters_lose_and_swap_nothing<B: OutboxBackend>() {
    const EMITTERS: usize = 8;
    const EACH: usize = 25;
    let scene = OutboxScene::<B>::new().await;
    let mut emitters = tokio::task::JoinSet::new();
    for emitter in 0..EMITTERS {
        let backend = Arc::clone(&scene.backend);
        emitters.spawn(async move {
            for at in 0..EACH {
                let own = event("t", &emitter.to_string(), &format!("{emitter} {at}"));
                let shared = event("t", "shared", &format!("shared {emitter} {at}"));
                if at % 5 == 4 {
                    backend.roll_back(vec![own.clone(), shared.clone()]).await;
                }
                backend.emit(vec![own, shared]).await;
            }
        });
    }
    let mut relay = scene.relay(1).await;
    let mut seen: Vec<String> = Vec::new();
    while seen.len() < EMITTERS * EACH * 2 {
        seen.extend(relay.drain().await);
    }
    emitters.join_all().await;
    assert!(relay.drain().await.is_empty(), "nothing comes twice");
    let mut next: HashMap<&str, usize> = HashMap::new();
    for payload in &seen {
        let (of, at) = payload.rsplit_once(' ').unwrap();
        let expected = next.entry(of).or_default();
        assert_eq!(at.parse(), Ok(*expected), "{payload}");
        *expected += 1;
    }
    assert!(next.values().all(|count| *count == EACH) && next.len() == 2 * EMITTERS);
}

/// A read brings no more than it may, and the next one goes on from there.
pub async fn a_read_keeps_to_its_limits<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    let all: Vec<_> = (0..7).map(|at| format!("{at}{}", "x".repeat(999))).collect();
    scene.backend.emit(all.iter().map(|payload| event("t", "k", payload)).collect()).await;
    let mut read = Vec::new();
    for (limits, expected) in [
        (ReadLimits { rows: 2, bytes: 1 << 20 }, 2),
        (ReadLimits { rows: 100, bytes: 2500 }, 3),
        (ReadLimits { rows: 100, bytes: 1 << 20 }, 2),
    ] {
        let batch = relay.poll(limits).await;
        assert_eq!(batch.events.len(), expected, "{limits:?}");
        assert_eq!(batch.more, read.len() + expected < all.len(), "{limits:?}");
        read.extend(payloads(&batch.events));
    }
    assert_eq!(read, all);
}

/// An event that is larger than a read may bring comes all the same.
pub async fn an_event_larger_than_the_limit_comes_alone<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    scene.emit("k", &"x".repeat(5000)).await;
    scene.emit("k", "small").await;
    let limits = ReadLimits { rows: 10, bytes: 100 };
    assert_eq!(relay.poll(limits).await.events.len(), 1);
    assert_eq!(payloads(&relay.poll(limits).await.events), ["small"]);
}

/// After a relay died, what it had not acknowledged comes again, under the same ids.
pub async fn what_was_not_acknowledged_comes_again_with_the_same_id<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut first = scene.relay(1).await;
    scene.emit("k", "1").await;
    let done = first.read().await;
    assert_eq!(first.acknowledge(&done).await, []);
    scene.emit("k", "2").await;
    let sent = first.read().await;
    assert_eq!(payloads(&sent), ["2"]);
    scene.pass(SPAN).await;
    let mut second = scene.relay(2).await;
    let again = second.read().await;
    assert_eq!(payloads(&again), ["2"], "what was acknowledged does not come again");
    assert_eq!(again[0].event, sent[0].event);
}

/// A lane is final up to the first event that is not acknowledged, whatever is above it.
pub async fn a_later_event_that_is_acknowledged_first_makes_nothing_final<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut first = scene.relay(1).await;
    for payload in ["1", "2", "3"] {
        scene.emit("k", payload).await;
    }
    let sent = first.read().await;
    first.acknowledge(&sent[1..]).await;
    scene.pass(SPAN).await;
    let mut second = scene.relay(2).await;
    assert_eq!(payloads(&second.read().await), ["1", "2", "3"]);
}

/// A lane that comes to a reader later brings what it is behind, and no other lane comes twice.
pub async fn a_lane_that_comes_late_is_read_from_where_it_is_final<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    let late = Lane::of("t", "late");
    let leased = relay.reader.lanes().find(|held| held.lane == late).unwrap();
    relay.reader.remove(late);
    for (key, payload) in [("a", "1"), ("late", "2"), ("b", "3"), ("late", "4")] {
        scene.emit(key, payload).await;
    }
    let early = relay.read().await;
    assert_eq!(payloads(&early), ["1", "3"]);
    relay.reader.add(leased);
    scene.emit("a", "5").await;
    assert_eq!(payloads(&relay.read().await), ["2", "4", "5"]);
    relay.acknowledge(&early).await;
    let lows = |low| relay.reader.lanes().filter(move |held| held.low == low).count();
    assert_eq!(lows(early[0].event.position - 1), 0, "what was acknowledged is final");
}

/// Whoever asks after a ring hears it, and hears it once.
pub async fn a_ring_is_heard_by_whoever_asks_later<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    for _ in 0..2 {
        scene.outbox.ring();
        scene.outbox.ring();
        let heard = tokio::time::timeout(SPAN, scene.outbox.rung()).await;
        assert!(heard.is_ok(), "it must be heard");
    }
}
