//! Parking: what cannot be sent is put aside, alone or with its key's later events, and comes back
//! in order.

use hapax_core::outbox::{DeliverySource, Hold, OutboxAdmin, ParkedPage, Selection};

use super::{
    OutboxBackend,
    scene::{OutboxScene, SINK, SPAN, ScriptedRelay, payloads},
};

const PAGE: ParkedPage = ParkedPage { after: 0, limit: 100 };

/// A scene in which "bad" of key "k" is parked with this hold, and everything else was sent.
async fn parked<B: OutboxBackend>(hold: Hold) -> (OutboxScene<B>, ScriptedRelay<B::Outbox>) {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    scene.emit("k", "bad").await;
    let read = relay.read().await;
    assert!(relay.park(&read[0], hold).await);
    relay.acknowledge(&[]).await;
    (scene, relay)
}

async fn listed<B: OutboxBackend>(scene: &OutboxScene<B>, selection: Selection) -> Vec<String> {
    let parked = scene.outbox.parked(SINK, selection, PAGE).await.unwrap();
    parked.iter().map(|parked| String::from_utf8(parked.event.payload.to_vec()).unwrap()).collect()
}

fn of_key(key: &str) -> Selection {
    Selection::Key { topic: "t".to_owned(), key: key.to_owned() }
}

/// An event parked by itself is final for its lane, and later ones of its key are sent.
pub async fn a_parked_event_lets_later_ones_go_on<B: OutboxBackend>() {
    let (scene, mut relay) = parked::<B>(Hold::Message).await;
    scene.emit("k", "next").await;
    let read = relay.read().await;
    assert_eq!((payloads(&read), read[0].source), (vec!["next".to_owned()], DeliverySource::Log));
    relay.acknowledge(&read).await;
    let lag = scene.outbox.lag(SINK).await.unwrap().unwrap();
    assert_eq!((lag.events(), lag.parked), (0, 1));
}

/// Where the key's tail is parked, later events of that key are held, and those of others are not.
pub async fn a_parked_tail_holds_its_key_and_no_other<B: OutboxBackend>() {
    let (scene, mut relay) = parked::<B>(Hold::Tail).await;
    scene.emit("k", "held").await;
    scene.emit("other", "free").await;
    let read = relay.read().await;
    let sources: Vec<_> = read.iter().map(|read| (&*read.event.key, read.source)).collect();
    assert_eq!(sources, [("k", DeliverySource::Held), ("other", DeliverySource::Log)]);
    assert!(relay.park(&read[0], Hold::Follow).await);
    relay.acknowledge(&read[1..]).await;
    assert_eq!(listed(&scene, Selection::All).await, ["bad", "held"]);
    assert!(relay.read().await.is_empty(), "nothing is sent again by itself");
}

/// Replayed, a key's events come in order, and before any later one.
pub async fn a_replay_brings_a_key_back_in_order<B: OutboxBackend>() {
    let (scene, mut relay) = parked::<B>(Hold::Tail).await;
    for payload in ["2", "3"] {
        scene.emit("k", payload).await;
    }
    assert!(relay.send_or_follow().await.is_empty());
    assert_eq!(scene.outbox.replay(SINK, of_key("other")).await.unwrap(), 0);
    assert_eq!(scene.outbox.replay(SINK, of_key("k")).await.unwrap(), 3);
    scene.emit("k", "4").await;
    assert_eq!(relay.send_or_follow().await, ["bad", "2", "3", "4"]);
    assert!(listed(&scene, Selection::All).await.is_empty(), "what was sent is not parked");
    scene.emit("k", "5").await;
    let read = relay.read().await;
    assert_eq!((payloads(&read), read[0].source), (vec!["5".to_owned()], DeliverySource::Log));
}

/// Of a key that is held, one event comes back with those before it; later ones stay.
pub async fn a_replay_of_one_brings_those_before_it<B: OutboxBackend>() {
    let (scene, mut relay) = parked::<B>(Hold::Tail).await;
    for payload in ["2", "3"] {
        scene.emit("k", payload).await;
    }
    relay.send_or_follow().await;
    let parked = scene.outbox.parked(SINK, Selection::All, PAGE).await.unwrap();
    let one = Selection::One(parked[1].event.position);
    assert_eq!(listed(&scene, one.clone()).await, ["2"]);
    assert_eq!(scene.outbox.replay(SINK, one).await.unwrap(), 2);
    assert_eq!(relay.send_or_follow().await, ["bad", "2"]);
    scene.emit("k", "4").await;
    assert!(relay.send_or_follow().await.is_empty(), "the rest of the key still holds it");
    assert_eq!(listed(&scene, Selection::All).await, ["3", "4"]);
}

/// An event that was held while the last one before it was sent again is sent after it, and does
/// not stay behind.
pub async fn what_follows_a_replay_is_sent_after_it<B: OutboxBackend>() {
    let (scene, mut relay) = parked::<B>(Hold::Tail).await;
    scene.emit("k", "2").await;
    let held = relay.read().await;
    assert_eq!(scene.outbox.replay(SINK, Selection::All).await.unwrap(), 1);
    let replayed = relay.read().await;
    assert_eq!(
        (payloads(&replayed), replayed[0].source),
        (vec!["bad".to_owned()], DeliverySource::Parked)
    );
    relay.acknowledge(&replayed).await;
    assert!(relay.park(&held[0], Hold::Follow).await);
    assert_eq!(relay.send_or_follow().await, ["2"]);
}

/// An event that cannot be sent even now is parked again, and its key with it.
pub async fn an_event_that_fails_again_is_parked_again<B: OutboxBackend>() {
    let (scene, mut relay) = parked::<B>(Hold::Tail).await;
    scene.emit("k", "2").await;
    relay.send_or_follow().await;
    scene.outbox.replay(SINK, Selection::All).await.unwrap();
    let again = relay.read().await;
    assert_eq!(payloads(&again), ["bad", "2"]);
    assert!(relay.read().await.is_empty(), "what is on its way does not come twice");
    assert!(relay.park(&again[0], Hold::Tail).await);
    assert!(relay.park(&again[1], Hold::Follow).await);
    assert!(relay.read().await.is_empty());
    let parked = scene.outbox.parked(SINK, Selection::All, PAGE).await.unwrap();
    assert!(parked.iter().all(|parked| !parked.replaying && parked.holds_key));
    assert_eq!(listed(&scene, Selection::All).await, ["bad", "2"]);
}

/// Whoever takes over does not send what was parked, even if it was not yet final.
pub async fn a_parked_event_is_not_read_from_the_log_again<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut first = scene.relay(1).await;
    for payload in ["bad", "held"] {
        scene.emit("k", payload).await;
    }
    let read = first.read().await;
    assert!(first.park(&read[0], Hold::Tail).await);
    scene.pass(SPAN).await;
    let mut second = scene.relay(2).await;
    let read = second.read().await;
    assert_eq!((payloads(&read), read[0].source), (vec!["held".to_owned()], DeliverySource::Held));
}

/// What was forgotten is gone for good, and holds nothing.
pub async fn forgotten_events_do_not_come_back<B: OutboxBackend>() {
    let (scene, mut relay) = parked::<B>(Hold::Tail).await;
    assert_eq!(scene.outbox.forget(SINK, of_key("other")).await.unwrap(), 0);
    assert_eq!(scene.outbox.forget(SINK, of_key("k")).await.unwrap(), 1);
    assert_eq!(scene.outbox.replay(SINK, Selection::All).await.unwrap(), 0);
    scene.emit("k", "2").await;
    let read = relay.read().await;
    assert_eq!((payloads(&read), read[0].source), (vec!["2".to_owned()], DeliverySource::Log));
}

/// A relay that lost its lane parks nothing.
pub async fn a_stale_relay_parks_nothing<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut first = scene.relay(1).await;
    scene.emit("k", "1").await;
    let read = first.read().await;
    scene.pass(SPAN).await;
    let mut second = scene.relay(2).await;
    assert!(!first.park(&read[0], Hold::Tail).await);
    assert_eq!(payloads(&second.read().await), ["1"]);
    assert!(listed(&scene, Selection::All).await.is_empty());
}

/// A listing shows the event and why it is there, page by page.
pub async fn parked_events_are_listed_as_they_are_in_pages<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    for key in ["a", "b", "c"] {
        scene.emit(key, key).await;
    }
    let read = relay.read().await;
    for delivery in &read {
        assert!(relay.park(delivery, Hold::Message).await);
    }
    let mut pages = Vec::new();
    let mut page = ParkedPage { after: 0, limit: 2 };
    loop {
        let parked = scene.outbox.parked(SINK, Selection::All, page).await.unwrap();
        let Some(last) = parked.last() else { break };
        page.after = last.event.position;
        assert!(parked.len() <= 2);
        pages.extend(parked);
    }
    assert_eq!(pages.len(), read.len());
    for (parked, delivery) in pages.iter().zip(&read) {
        assert_eq!(parked.event, delivery.event);
        assert_eq!((parked.attempts, &*parked.reason), (3, "refused"));
        assert!(!parked.holds_key && !parked.replaying && parked.parked_at >= parked.event.at);
    }
    assert_eq!(listed(&scene, of_key("b")).await, ["b"]);
}
