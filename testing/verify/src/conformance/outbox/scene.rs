//! A database, events for it, and a relay that only reads and acknowledges.

use std::{sync::Arc, time::Duration};

use hapax_core::{
    Owner,
    outbox::{
        DeliverySource, Destination, Event, EventBatch, EventDelivery, Hold, Lane, Leases,
        OutboxLog, Park, Parking, ReadLimits, Reader, RelayLease, Start, Topics, poll,
    },
    time::micros,
};

use super::OutboxBackend;

pub(super) const SPAN: Duration = Duration::from_secs(30);
pub(super) const SINK: &str = "sink";

/// A database with one destination that wants everything, from the beginning.
pub(super) struct OutboxScene<B: OutboxBackend> {
    pub(super) backend: Arc<B>,
    pub(super) outbox: B::Outbox,
}

impl<B: OutboxBackend> OutboxScene<B> {
    pub(super) async fn new() -> Self {
        let scene = Self::empty().await;
        scene.register(SINK, Topics::all(), Start::Beginning).await;
        scene
    }

    /// A database without a destination.
    pub(super) async fn empty() -> Self {
        let backend = Arc::new(B::create().await);
        let outbox = backend.open().await;
        Self { backend, outbox }
    }

    pub(super) async fn register(&self, name: &str, topics: Topics, start: Start) {
        let destination = Destination::new(name, topics).unwrap();
        self.outbox.register(destination, start).await.unwrap();
    }

    /// Emits an event in a transaction of its own.
    pub(super) async fn emit(&self, key: &str, payload: &str) {
        self.backend.emit(vec![event("t", key, payload)]).await;
    }

    pub(super) async fn pass(&self, span: Duration) {
        self.backend.step_clock(micros(span)).await;
    }

    /// A relay that has all it can get.
    pub(super) async fn relay(&self, owner: i64) -> ScriptedRelay<B::Outbox> {
        self.relay_of(SINK, owner).await
    }

    pub(super) async fn relay_of(&self, destination: &str, owner: i64) -> ScriptedRelay<B::Outbox> {
        let outbox = self.backend.open().await;
        let destination = destination.to_owned();
        let mut relay =
            ScriptedRelay { outbox, destination, owner: Owner(owner), reader: Reader::new() };
        relay.lease().await;
        relay
    }
}

/// Somebody who leases and reads, and does with events what a test says.
pub(super) struct ScriptedRelay<O> {
    pub(super) outbox: O,
    pub(super) destination: String,
    pub(super) owner: Owner,
    pub(super) reader: Reader,
}

impl<O: OutboxLog> ScriptedRelay<O> {
    pub(super) async fn lease(&mut self) -> Leases {
        let (destination, owner) = (self.destination.clone(), self.owner);
        let lease = RelayLease { destination, owner, span: SPAN };
        let leases = self.outbox.lease(lease).await.unwrap().expect("it is registered");
        let had: Vec<_> = self.reader.lanes().collect();
        for held in had {
            if !leases
                .lanes
                .iter()
                .any(|leased| (leased.lane, leased.fence) == (held.lane, held.fence))
            {
                self.reader.remove(held.lane);
            }
        }
        for leased in &leases.lanes {
            if self.reader.fence(leased.lane) != Some(leased.fence) {
                self.reader.add(*leased);
            }
        }
        leases
    }

    pub(super) async fn poll(&mut self, limits: ReadLimits) -> EventBatch {
        let batch = poll(&self.outbox, &self.destination, &mut self.reader, limits).await;
        batch.unwrap().expect("it is registered")
    }

    /// Everything there is to read.
    pub(super) async fn read(&mut self) -> Vec<EventDelivery> {
        let mut events = Vec::new();
        loop {
            let batch = self.poll(ReadLimits::default()).await;
            let more = batch.more || !batch.events.is_empty();
            events.extend(batch.events);
            if !more {
                return events;
            }
        }
    }

    /// Acknowledges these and stores the progress.
    pub(super) async fn acknowledge(&mut self, events: &[EventDelivery]) -> Vec<Lane> {
        for EventDelivery { event, .. } in events {
            self.reader.acknowledge(event.lane, event.position);
        }
        let progress = self.reader.progress();
        let lost = self.outbox.acknowledge(&self.destination, progress.clone()).await.unwrap();
        self.reader.stored(&progress, &lost);
        lost
    }

    /// Reads and acknowledges everything, until nothing is missing any more.
    pub(super) async fn drain(&mut self) -> Vec<String> {
        let mut drained = Vec::new();
        loop {
            let events = self.read().await;
            drained.extend(payloads(&events));
            self.acknowledge(&events).await;
            if self.reader.gaps().is_empty() && events.is_empty() {
                return drained;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Parks this event; whether the lane is still its own.
    pub(super) async fn park(&mut self, delivery: &EventDelivery, hold: Hold) -> bool {
        let (lane, position) = (delivery.event.lane, delivery.event.position);
        let fence = self.reader.fence(lane).expect("its lane is read");
        let events = vec![Parking::new(position, hold, 3, "refused")];
        let park = Park { destination: self.destination.clone(), lane, fence, events };
        let parked = self.outbox.park(park).await.unwrap();
        if parked {
            self.reader.parked(lane, position);
        }
        parked
    }

    /// Reads, parks what is held, and acknowledges the rest; what was sent.
    pub(super) async fn send_or_follow(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        loop {
            let events = self.read().await;
            if events.is_empty() {
                return sent;
            }
            let (held, free): (Vec<_>, Vec<_>) =
                events.into_iter().partition(|delivery| delivery.source == DeliverySource::Held);
            sent.extend(payloads(&free));
            self.acknowledge(&free).await;
            for delivery in &held {
                assert!(self.park(delivery, Hold::Follow).await);
            }
        }
    }
}

pub(super) fn event(topic: &str, key: &str, payload: &str) -> Event {
    Event::new(topic, key, payload.to_owned()).unwrap()
}

pub(super) fn payloads(events: &[EventDelivery]) -> Vec<String> {
    let text =
        |delivery: &EventDelivery| String::from_utf8(delivery.event.payload.to_vec()).unwrap();
    events.iter().map(text).collect()
}
