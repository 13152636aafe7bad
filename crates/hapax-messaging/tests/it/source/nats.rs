//! NATS JetStream, the real one.

use std::time::Duration;

use async_nats::jetstream::{self, consumer::pull, stream};
use hapax_messaging::{
    consumer::Source as _,
    sink,
    source::nats::{Nats, NatsOptions},
};
use hapax_services::{nats, roster::Service};

use super::{
    effects::one_effect,
    suite::{World, source_conformance, source_patience},
};
use crate::servers::{Own, shared, unique};

struct Stream {
    url: String,
    name: String,
    server: Option<Own>,
}

source_conformance!(Stream);
one_effect!(Stream);
source_patience!(Stream);

const ACK_WAIT: Duration = Duration::from_secs(2);

impl Stream {
    async fn make(url: &str, server: Option<Own>) -> Self {
        let world = Self { url: url.to_owned(), name: unique("source"), server };
        let config = stream::Config {
            name: world.name.clone(),
            subjects: vec![format!("{}.>", world.name)],
            max_age: Duration::from_secs(3600),
            ..stream::Config::default()
        };
        world.jetstream().await.create_stream(config).await.unwrap();
        world
    }

    async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(async_nats::connect(&self.url).await.unwrap())
    }

    fn options(&self) -> NatsOptions {
        NatsOptions { ack_wait: ACK_WAIT, ..NatsOptions::new(&self.name, "worker") }
    }
}

impl World for Stream {
    type Sink = sink::Nats;
    type Source = Nats;

    const PATIENCE: Option<Duration> = Some(ACK_WAIT);
    const COUNTS: bool = true;

    async fn open() -> Self {
        Self::make(&shared(Service::Nats), None).await
    }

    async fn alone() -> Self {
        let server = Own::start(nats::start).await;
        let url = server.url().to_owned();
        Self::make(&url, Some(server)).await
    }

    fn server(&mut self) -> &mut Own {
        self.server.as_mut().expect("it is alone")
    }

    fn topic(&self) -> String {
        format!("{}.placed", self.name)
    }

    fn sink(&self) -> sink::Nats {
        sink::Nats::to(&self.url)
    }

    async fn source(&self) -> Nats {
        Nats::open(&self.url, &self.options()).await.unwrap()
    }
}

#[tokio::test]
async fn messages_can_come_again_for_as_long_as_the_stream_keeps_them() {
    let source = Stream::open().await.source().await;
    assert_eq!(source.longest_redelivery(), Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn a_consumer_that_gives_up_on_messages_is_refused() {
    let world = Stream::open().await;
    let stream = world.jetstream().await.get_stream(&world.name).await.unwrap();
    let config = pull::Config {
        durable_name: Some("worker".to_owned()),
        max_deliver: 3,
        ..pull::Config::default()
    };
    stream.create_consumer(config).await.unwrap();
    let refused = Nats::open(&world.url, &world.options()).await.unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(why.contains("3 deliveries"), "{why}");
}

#[tokio::test]
async fn a_consumer_that_was_removed_ends_the_source() {
    let world = Stream::open().await;
    let mut source = world.source().await;
    let stream = world.jetstream().await.get_stream(&world.name).await.unwrap();
    let removing = async {
        // The source is waiting for messages by then, or finds out when it asks.
        tokio::task::yield_now().await;
        stream.delete_consumer("worker").await.unwrap();
    };
    let (arrived, ()) = tokio::join!(source.next(), removing);
    assert!(arrived.is_err(), "{:?}", arrived.map(drop));
}
