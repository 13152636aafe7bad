//! RabbitMQ, the real one.

use std::{collections::BTreeMap, time::Duration};

use hapax_core::outbox::Stored;
use hapax_messaging::sink::{CloudEvents, RabbitMq, Sink, Verdict};
use hapax_services::{rabbitmq, roster::Service};
use lapin::{
    Channel, Connection, ConnectionProperties, ExchangeKind,
    message::BasicGetMessage,
    options::{BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};

use super::{
    suite::{sink_conformance, sink_copies, sink_outages, sink_refusals},
    world::{Arrived, Breakable, Choosy, World, event, turns, with_header},
};
use crate::servers::{Own, shared, unique};

/// An exchange and a queue of its own.
struct Exchange {
    url: String,
    name: String,
    server: Option<Own>,
}

sink_conformance!(Exchange);
sink_refusals!(Exchange);
sink_copies!(Exchange);
sink_outages!(Exchange);

impl Exchange {
    async fn make(url: &str, server: Option<Own>) -> Self {
        let mut world = Self { url: url.to_owned(), name: unique("sink"), server };
        world.declare().await;
        if let Some(server) = &mut world.server {
            server.restart().await;
        }
        world
    }

    /// Says what it expects to be there, as whoever reads from it does whenever it connects: what was
    /// declared moments before a broker is killed, the broker may forget.
    async fn declare(&self) {
        let channel = self.channel().await;
        let (name, none) = (self.name.as_str(), FieldTable::default());
        let durable = ExchangeDeclareOptions { durable: true, ..Default::default() };
        let declared =
            channel.exchange_declare(name.into(), ExchangeKind::Topic, durable, none.clone());
        declared.await.unwrap();
        let durable = QueueDeclareOptions { durable: true, ..Default::default() };
        channel.queue_declare(name.into(), durable, none.clone()).await.unwrap();
        let bind = QueueBindOptions::default();
        let bound = channel.queue_bind(name.into(), name.into(), "orders.#".into(), bind, none);
        bound.await.unwrap();
    }

    async fn channel(&self) -> Channel {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(&self.url, properties).await.unwrap();
        connection.create_channel().await.unwrap()
    }

    fn server(&mut self) -> &mut Own {
        self.server.as_mut().expect("it is alone")
    }
}

impl World for Exchange {
    type Sink = RabbitMq;

    const PAYLOAD_BYTES_MAX: usize = 1 << 20;

    async fn open() -> Self {
        Self::make(&shared(Service::RabbitMq), None).await
    }

    fn topic(&self) -> String {
        "orders.placed".to_owned()
    }

    async fn sink(&self) -> RabbitMq {
        let events = CloudEvents::from_source("/suite").unwrap();
        RabbitMq::to(&self.url, &self.name).events(events).within(Duration::from_secs(3))
    }

    async fn arrived(&mut self) -> Vec<Arrived> {
        let channel = self.channel().await;
        let mut arrived = Vec::new();
        let options = BasicGetOptions { no_ack: true };
        while let Some(message) =
            channel.basic_get(self.name.as_str().into(), options).await.unwrap()
        {
            arrived.push(read(&message));
        }
        arrived
    }
}

fn read(message: &BasicGetMessage) -> Arrived {
    let properties = &message.properties;
    assert_eq!(*properties.delivery_mode(), Some(2), "it is kept on disk");
    let text = |value: &AMQPValue| {
        let AMQPValue::LongString(text) = value else { panic!("{value:?}") };
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    };
    let headers: BTreeMap<String, String> = properties
        .headers()
        .as_ref()
        .unwrap()
        .into_iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect();
    let content_type = properties.content_type().as_ref().unwrap().to_string();
    let event = Arrived::from_headers(headers, "ce-", content_type, message.data.clone());
    assert_eq!(properties.message_id().as_ref().unwrap().as_str(), event.id);
    event
}

impl Choosy for Exchange {
    /// The broker wants a list there, and closes the channel of whoever sends something else.
    fn unwelcome(&self, event: Stored) -> Stored {
        with_header(event, "CC", "orders.copy")
    }
}

impl Breakable for Exchange {
    const PATIENCE: Duration = Duration::from_secs(10);

    async fn alone() -> Self {
        let server = Own::start(rabbitmq::start).await;
        let url = server.url().to_owned();
        Self::make(&url, Some(server)).await
    }

    async fn kill(&mut self) {
        self.server().kill().await;
    }

    async fn revive(&mut self) {
        self.server().revive().await;
        self.declare().await;
    }

    fn freeze(&mut self) {
        self.server().freeze();
    }

    fn thaw(&mut self) {
        self.server().thaw();
    }
}

#[tokio::test]
async fn of_many_events_on_their_way_exactly_those_are_refused_that_no_queue_is_bound_for() {
    let mut world = Exchange::open().await;
    let sink = world.sink().await;
    let mut events = turns("orders.placed", 200, 1);
    for event in events.iter_mut().skip(1).step_by(2) {
        event.topic = "unbound".to_owned();
    }
    let verdicts = sink.send(&events).await.unwrap();
    for (event, verdict) in events.iter().zip(&verdicts) {
        match event.topic.as_str() {
            "unbound" => assert!(
                matches!(verdict, Verdict::Refused(why) if why.contains("NO_ROUTE")),
                "{verdict:?}"
            ),
            _ => assert_eq!(*verdict, Verdict::Taken),
        }
    }
    assert_eq!(world.arrived().await.len(), 100);
}

#[tokio::test]
async fn a_full_queue_misses_what_does_not_fit() {
    let world = Exchange::open().await;
    let name = unique("full");
    let mut limits = FieldTable::default();
    limits.insert("x-max-length".into(), AMQPValue::LongInt(1));
    limits.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    let durable = QueueDeclareOptions { durable: true, ..Default::default() };
    world.channel().await.queue_declare(name.as_str().into(), durable, limits).await.unwrap();
    let sink = RabbitMq::to(&world.url, "");
    let events = [1, 2, 3].map(|turn| event(&name, "key", turn.to_string()));
    let verdicts = sink.send(&events).await.unwrap();
    assert_eq!(verdicts[0], Verdict::Taken);
    assert!(
        verdicts[1..].iter().any(|verdict| matches!(verdict, Verdict::Missed(_))),
        "{verdicts:?}"
    );
}

#[tokio::test]
async fn an_exchange_that_is_not_there_is_an_outage_that_ends_when_it_is() {
    let world = Exchange::open().await;
    let name = unique("later");
    let sink = RabbitMq::to(&world.url, &name);
    let events = turns("orders.placed", 3, 1);
    let outage = sink.send(&events).await.unwrap_err();
    assert!(!outage.needs_somebody());

    let channel = world.channel().await;
    let (kind, options) = (ExchangeKind::Fanout, ExchangeDeclareOptions::default());
    let none = FieldTable::default();
    channel.exchange_declare(name.as_str().into(), kind, options, none.clone()).await.unwrap();
    let bind = QueueBindOptions::default();
    let queue = world.name.as_str().into();
    channel.queue_bind(queue, name.as_str().into(), "".into(), bind, none).await.unwrap();
    assert_eq!(sink.send(&events).await.unwrap(), vec![Verdict::Taken; 3]);
}

#[tokio::test]
async fn a_wrong_password_waits_for_somebody() {
    let world = Exchange::open().await;
    let url = world.url.replace("guest:guest", "guest:wrong");
    let outage = RabbitMq::to(url, "").send(&turns("orders", 1, 1)).await.unwrap_err();
    assert!(outage.needs_somebody(), "{outage:?}");
}
