//! RabbitMQ, the real one: a classic queue and a quorum queue.

use std::time::Duration;

use hapax_messaging::{
    consumer::{Disposition, Naming, Receipt},
    sink,
    source::rabbitmq::RabbitMq,
};
use hapax_services::{rabbitmq, roster::Service};
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{BasicPublishOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};

use super::{
    effects::{effects_of, one_effect},
    suite::{World, cases, next, nothing, send, source_conformance},
};
use crate::{
    servers::{Own, shared, unique},
    sink::world::turns,
};

/// How many messages are under way at once.
const AT_ONCE: u16 = 16;

struct Classic(Queue);

source_conformance!(Classic);
one_effect!(Classic);

struct Quorum(Queue);

mod quorum {
    use super::{Quorum, cases};

    cases! { Quorum: what_is_put_back_comes_again_after_its_time }
}

struct Queue {
    url: String,
    name: String,
    server: Option<Own>,
}

impl Queue {
    async fn make(url: &str, server: Option<Own>, kind: &str) -> Self {
        let mut world = Self { url: url.to_owned(), name: unique("source"), server };
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString(kind.into()));
        let durable = QueueDeclareOptions { durable: true, ..Default::default() };
        let (channel, name) = (world.channel().await, world.name.as_str());
        channel.queue_declare(name.into(), durable, arguments).await.unwrap();
        // RabbitMQ confirms a queue before it is on disk: killed soon, it would forget it.
        if let Some(server) = &mut world.server {
            server.restart().await;
        }
        world
    }

    async fn channel(&self) -> Channel {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(&self.url, properties).await.unwrap();
        connection.create_channel().await.unwrap()
    }

    async fn source(&self) -> RabbitMq {
        RabbitMq::open(&self.url, &self.name, AT_ONCE).await.unwrap()
    }
}

macro_rules! world {
    ($world:ident, $kind:literal, counts: $counts:literal) => {
        impl World for $world {
            type Sink = sink::RabbitMq;
            type Source = RabbitMq;

            const PATIENCE: Option<Duration> = None;
            const COUNTS: bool = $counts;

            async fn open() -> Self {
                Self(Queue::make(&shared(Service::RabbitMq), None, $kind).await)
            }

            async fn alone() -> Self {
                let server = Own::start(rabbitmq::start).await;
                let url = server.url().to_owned();
                Self(Queue::make(&url, Some(server), $kind).await)
            }

            fn server(&mut self) -> &mut Own {
                self.0.server.as_mut().expect("it is alone")
            }

            fn topic(&self) -> String {
                self.0.name.clone()
            }

            fn sink(&self) -> sink::RabbitMq {
                sink::RabbitMq::to(&self.0.url, "")
            }

            async fn source(&self) -> RabbitMq {
                self.0.source().await
            }
        }
    };
}

world!(Classic, "classic", counts: false);
world!(Quorum, "quorum", counts: true);

#[tokio::test]
async fn no_more_messages_are_under_way_than_were_asked_for() {
    let world = Classic::open().await;
    let mut source = RabbitMq::open(&world.0.url, &world.0.name, 2).await.unwrap();
    send(&world.sink(), &turns(&world.topic(), 5, 1)).await;
    let (first, _second) = (next(&mut source).await, next(&mut source).await);
    nothing(&mut source, Duration::from_millis(300)).await;
    first.receipt.settle(Disposition::Done).await.unwrap();
    next(&mut source).await;
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_told_at_once() {
    let url = shared(Service::RabbitMq);
    let refused = RabbitMq::open(&url, &unique("none"), AT_ONCE).await.unwrap_err();
    assert!(refused.to_string().contains("open the queue"), "{refused}");
}

/// Sends what others send: no CloudEvent, perhaps a `message_id`.
async fn publish(world: &Classic, payload: &str, message_id: Option<&str>) {
    let channel = world.0.channel().await;
    let options = BasicPublishOptions::default();
    let mut properties = BasicProperties::default();
    if let Some(id) = message_id {
        properties = properties.with_message_id(id.into());
    }
    let queue = world.0.name.as_str().into();
    let sent = channel.basic_publish("".into(), queue, options, payload.as_bytes(), properties);
    sent.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_strangers_go_by_their_message_id() {
    let world = Classic::open().await;
    for (payload, id) in [("1", "a"), ("2", "b"), ("1", "a")] {
        publish(&world, payload, Some(id)).await;
    }
    let effects = effects_of(world.source().await, Naming::default(), 2).await;
    assert_eq!(effects, [("a".to_owned(), 1), ("b".to_owned(), 1)].into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_strangers_go_by_what_their_payloads_say() {
    let world = Classic::open().await;
    let (seven, eight) = (r#"{"order":{"id":7}}"#, r#"{"order":{"id":"eight"}}"#);
    for payload in [seven, eight, seven] {
        publish(&world, payload, None).await;
    }
    let naming = Naming::default().id_at("/order/id");
    let effects = effects_of(world.source().await, naming, 2).await;
    assert_eq!(effects, [("7".to_owned(), 1), ("eight".to_owned(), 1)].into());
}
