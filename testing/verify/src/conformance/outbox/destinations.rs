//! Destinations: each with its topics, its beginning and its own progress.

use std::time::Duration;

use hapax_core::{
    Owner,
    outbox::{
        Lane, OutboxAdmin, OutboxLog, ParkedPage, ReadLimits, RelayLease, Selection, Start, Topics,
    },
};

use super::{
    OutboxBackend,
    scene::{OutboxScene, SINK, SPAN, event},
};

/// A destination gets the topics it names, exactly or by their beginning, and what it does not
/// want is final for it at once.
pub async fn only_wanted_topics_come<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::empty().await;
    let topics = Topics::parse(["orders.*", "payment"]).unwrap();
    scene.register(SINK, topics, Start::Beginning).await;
    for topic in ["orders.new", "orders", "ordersx.new", "payment", "payment.done", "orders."] {
        scene.backend.emit(vec![event(topic, "k", topic)]).await;
    }
    let mut relay = scene.relay(1).await;
    assert_eq!(relay.drain().await, ["orders.new", "payment", "orders."]);
    assert_eq!(scene.outbox.lag(SINK).await.unwrap().unwrap().events(), 0);
    let last = relay.reader.scanned();
    assert!(relay.reader.lanes().all(|held| held.low == last), "all of it is final");
}

/// A new destination begins with what is kept, or with what comes.
pub async fn a_destination_begins_where_it_is_told<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::empty().await;
    scene.emit("k", "before").await;
    scene.register("old", Topics::all(), Start::Beginning).await;
    scene.register("new", Topics::all(), Start::Now).await;
    scene.emit("k", "after").await;
    assert_eq!(scene.relay_of("old", 1).await.drain().await, ["before", "after"]);
    assert_eq!(scene.relay_of("new", 1).await.drain().await, ["after"]);
}

/// What one destination has, and acknowledges, is nothing to another.
pub async fn destinations_do_not_disturb_each_other<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    scene.register("other", Topics::all(), Start::Beginning).await;
    scene.emit("k", "1").await;
    let mut one = scene.relay(1).await;
    assert_eq!(one.drain().await, ["1"]);
    let mut other = scene.relay_of("other", 1).await;
    assert_eq!(other.reader.lanes().count(), Lane::all().count(), "it has lanes of its own");
    assert_eq!(other.drain().await, ["1"]);
}

/// Registered again, a destination has other topics and goes on where it was.
pub async fn registering_again_changes_the_topics_and_keeps_the_progress<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    scene.emit("k", "1").await;
    let mut relay = scene.relay(1).await;
    assert_eq!(relay.drain().await, ["1"]);
    scene.register(SINK, Topics::parse(["u"]).unwrap(), Start::Beginning).await;
    scene.backend.emit(vec![event("t", "k", "2"), event("u", "k", "3")]).await;
    assert_eq!(relay.drain().await, ["3"]);
    scene.pass(SPAN).await;
    scene.register(SINK, Topics::all(), Start::Now).await;
    scene.emit("k", "4").await;
    assert_eq!(scene.relay(2).await.drain().await, ["4"]);
}

/// A destination that was removed is not there, for anybody.
pub async fn a_removed_destination_is_unknown<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    scene.emit("k", "1").await;
    let events = relay.read().await;
    assert!(scene.outbox.remove(SINK).await.unwrap());
    assert!(!scene.outbox.remove(SINK).await.unwrap());
    let lease = RelayLease { destination: SINK.to_owned(), owner: Owner(1), span: SPAN };
    assert_eq!(scene.outbox.lease(lease).await.unwrap(), None);
    let look = relay.reader.look(ReadLimits::default());
    assert_eq!(scene.outbox.look(SINK, look).await.unwrap(), None);
    assert_eq!(scene.outbox.lag(SINK).await.unwrap(), None);
    assert!(!scene.outbox.set_paused(SINK, true).await.unwrap());
    let page = ParkedPage { after: 0, limit: 10 };
    assert_eq!(scene.outbox.parked(SINK, Selection::All, page).await.unwrap(), []);
    assert!(!relay.acknowledge(&events).await.is_empty(), "its lanes are lost");
    assert_eq!(scene.outbox.destinations().await.unwrap(), []);
    scene.register(SINK, Topics::all(), Start::Beginning).await;
    assert_eq!(scene.relay(2).await.drain().await, ["1"], "it begins anew");
}

/// Relays are told that sending was stopped, and that it goes on.
pub async fn a_paused_destination_says_so<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    scene.register("other", Topics::parse(["a", "b.*"]).unwrap(), Start::Now).await;
    let mut relay = scene.relay(1).await;
    for paused in [true, false] {
        assert!(scene.outbox.set_paused(SINK, paused).await.unwrap());
        assert_eq!(relay.lease().await.paused, paused);
        assert_eq!(scene.outbox.lag(SINK).await.unwrap().unwrap().paused, paused);
        let registered = scene.outbox.destinations().await.unwrap();
        let names: Vec<_> = registered
            .iter()
            .map(|known| {
                (
                    known.destination.name(),
                    known.paused,
                    known.destination.topics().patterns().len(),
                )
            })
            .collect();
        assert_eq!(names, [("other", false, 2), (SINK, paused, 1)]);
    }
}

/// The lag counts events that are wanted and not final, by lane, and how long the oldest waits.
pub async fn the_lag_counts_what_is_wanted_and_not_final<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::empty().await;
    scene.register(SINK, Topics::parse(["t"]).unwrap(), Start::Beginning).await;
    let lag = scene.outbox.lag(SINK).await.unwrap().unwrap();
    assert_eq!((lag.events(), lag.age(), lag.relays, lag.parked), (0, Duration::ZERO, 0, 0));
    scene.emit("a", "1").await;
    scene.backend.emit(vec![event("unwanted", "a", "2"), event("t", "b", "3")]).await;
    let mut relay = scene.relay(7).await;
    let lag = scene.outbox.lag(SINK).await.unwrap().unwrap();
    assert_eq!((lag.events(), lag.relays, lag.lanes.len()), (2, 1, Lane::all().count()));
    for key in ["a", "b"] {
        let lane = &lag.lanes[Lane::of("t", key).index()];
        assert_eq!((lane.events, lane.owner), (1, Some(Owner(7))));
        assert!(lane.oldest.is_some());
    }
    relay.drain().await;
    scene.pass(SPAN).await;
    let lag = scene.outbox.lag(SINK).await.unwrap().unwrap();
    assert_eq!((lag.events(), lag.relays), (0, 0));
    assert!(lag.lanes.iter().all(|lane| lane.owner.is_none()));
}
