//! NATS JetStream, the real one.

use std::{collections::BTreeMap, time::Duration};

use async_nats::{
    ConnectOptions,
    jetstream::{self, stream},
};
use hapax_core::outbox::Stored;
use hapax_messaging::sink::{CloudEvents, Nats, Sink, Verdict};
use hapax_services::{nats, roster::Service};
use percent_encoding::percent_decode_str;

use super::{
    suite::{sink_conformance, sink_deduplication, sink_outages, sink_refusals},
    world::{Arrived, Breakable, Choosy, World, event, with_header},
};
use crate::servers::{Own, shared, unique};

/// A stream of its own.
struct Stream {
    url: String,
    name: String,
    jetstream: jetstream::Context,
    read: u64,
    server: Option<Own>,
}

sink_conformance!(Stream);
sink_refusals!(Stream);
sink_deduplication!(Stream);
sink_outages!(Stream);

const MESSAGE_BYTES_MAX: usize = 900 << 10;

impl Stream {
    async fn make(url: &str, server: Option<Own>) -> Self {
        let connected = ConnectOptions::new().retry_on_initial_connect().connect(url).await;
        let jetstream = jetstream::new(connected.unwrap());
        let name = unique("sink");
        let config = stream::Config {
            name: name.clone(),
            subjects: vec![format!("{name}.>")],
            max_message_size: i32::try_from(MESSAGE_BYTES_MAX).unwrap(),
            ..stream::Config::default()
        };
        jetstream.create_stream(config).await.unwrap();
        Self { url: url.to_owned(), name, jetstream, read: 0, server }
    }

    fn server(&mut self) -> &mut Own {
        self.server.as_mut().expect("it is alone")
    }
}

impl World for Stream {
    type Sink = Nats;

    const PAYLOAD_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1024;

    async fn open() -> Self {
        Self::make(&shared(Service::Nats), None).await
    }

    fn topic(&self) -> String {
        format!("{}.placed", self.name)
    }

    async fn sink(&self) -> Nats {
        let events = CloudEvents::from_source("/suite").unwrap();
        Nats::to(&self.url).events(events).within(Duration::from_secs(2))
    }

    async fn arrived(&mut self) -> Vec<Arrived> {
        let stream = self.jetstream.get_stream(&self.name).await.unwrap();
        let last = stream.get_info().await.unwrap().state.last_sequence;
        let mut arrived = Vec::new();
        for sequence in self.read + 1..=last {
            let message = stream.get_raw_message(sequence).await.unwrap();
            let mut headers: BTreeMap<String, String> = BTreeMap::new();
            for (name, values) in message.headers.iter() {
                let value = values.first().unwrap().as_str();
                let attribute = name.to_string().starts_with("ce-");
                let value = match attribute {
                    true => percent_decode_str(value).decode_utf8().unwrap().into_owned(),
                    false => value.to_owned(),
                };
                headers.insert(name.to_string(), value);
            }
            let content_type = headers.remove("content-type").unwrap();
            let id = headers.remove("Nats-Msg-Id").unwrap();
            let payload = message.payload.to_vec();
            let event = Arrived::from_headers(headers, "ce-", content_type, payload);
            assert_eq!(event.id, id, "what is deduplicated by is the event's id");
            arrived.push(event);
        }
        self.read = last;
        arrived
    }
}

impl Choosy for Stream {
    fn unwelcome(&self, event: Stored) -> Stored {
        Stored { payload: vec![b'1'; MESSAGE_BYTES_MAX + 1].into(), ..event }
    }
}

impl Breakable for Stream {
    const PATIENCE: Duration = Duration::from_secs(6);

    async fn alone() -> Self {
        let server = Own::start(nats::start).await;
        let url = server.url().to_owned();
        Self::make(&url, Some(server)).await
    }

    async fn kill(&mut self) {
        self.server().kill().await;
    }

    async fn revive(&mut self) {
        self.server().revive().await;
    }

    fn freeze(&mut self) {
        self.server().freeze();
    }

    fn thaw(&mut self) {
        self.server().thaw();
    }
}

async fn refused(world: &Stream, event: Stored) -> String {
    let verdicts = world.sink().await.send(&[event]).await.unwrap();
    let [Verdict::Refused(why)] = &verdicts[..] else { panic!("{verdicts:?}") };
    why.clone()
}

#[tokio::test]
async fn an_event_for_which_there_is_no_stream_waits_until_there_is_one() {
    let world = Stream::open().await;
    let event = event(&unique("nobody"), "key", "1");
    let outage = world.sink().await.send(std::slice::from_ref(&event)).await.unwrap_err();
    let why = std::error::Error::source(&outage).unwrap().to_string();
    assert!(why.contains("no stream takes") && !outage.needs_somebody(), "{why}");
}

#[tokio::test]
async fn a_topic_that_is_no_subject_is_refused() {
    let world = Stream::open().await;
    for topic in ["two words", "a..b", ".a", "a.", "a.*", "a.>", "line\nend"] {
        let topic = format!("{}{topic}", world.topic());
        let topic = topic.replace(".placed.a", ".placed..a");
        let why = refused(&world, event(&topic, "key", "1")).await;
        assert!(why.contains("not a subject"), "{topic}: {why}");
    }
}

#[tokio::test]
async fn a_message_that_the_server_itself_does_not_take_is_refused() {
    let world = Stream::open().await;
    let why = refused(&world, event(&world.topic(), "key", vec![b'1'; (1 << 20) + 1])).await;
    assert!(why.contains("size limit"), "{why}");
}

#[tokio::test]
async fn a_header_gives_no_orders_to_the_server() {
    let mut world = Stream::open().await;
    let sink = world.sink().await;
    let first = event(&world.topic(), "key", "1");
    // One that is obeyed would be refused, and one that erases the stream would be, too.
    let second = with_header(event(&world.topic(), "key", "2"), "Nats-Expected-Last-Sequence", "7");
    let third = with_header(event(&world.topic(), "key", "3"), "Nats-Rollup", "all");
    let verdicts = sink.send(&[first, second, third]).await.unwrap();
    assert_eq!(verdicts, vec![Verdict::Taken; 3]);
    assert_eq!(world.arrived().await.len(), 3);
}

#[tokio::test]
async fn subjects_begin_with_the_prefix() {
    let mut world = Stream::open().await;
    let sink = Nats::to(&world.url).prefix(format!("{}.eu.", world.name));
    assert_eq!(sink.send(&[event("orders", "key", "1")]).await.unwrap(), [Verdict::Taken]);
    let stream = world.jetstream.get_stream(&world.name).await.unwrap();
    let message = stream.get_raw_message(1).await.unwrap();
    assert_eq!(message.subject.as_str(), format!("{}.eu.orders", world.name));
    assert_eq!(world.arrived().await.len(), 1);
}

#[tokio::test]
async fn a_full_stream_is_an_outage() {
    let world = Stream::open().await;
    let name = unique("full");
    let config = stream::Config {
        name: name.clone(),
        max_messages: 1,
        discard: stream::DiscardPolicy::New,
        ..stream::Config::default()
    };
    world.jetstream.create_stream(config).await.unwrap();
    let sink = world.sink().await;
    assert_eq!(sink.send(&[event(&name, "key", "1")]).await.unwrap(), [Verdict::Taken]);
    let outage = sink.send(&[event(&name, "key", "2")]).await.unwrap_err();
    assert!(!outage.needs_somebody());
}
