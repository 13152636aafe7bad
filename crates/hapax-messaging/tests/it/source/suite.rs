//! What every source without partitions does.

use std::{collections::BTreeSet, time::Duration};

use hapax_core::outbox::Stored;
use hapax_messaging::{
    consumer::{Arrived, Delivery, Disposition, Incoming, Receipt, Source},
    sink::{Sink, Verdict},
};
use tokio::time::{Instant, timeout};

use crate::{
    servers::Own,
    sink::world::{event, turns, with_header},
};

/// A queue or stream that can be sent to and consumed from.
pub(crate) trait World: Sized + Send {
    type Sink: Sink;
    type Source: Source;

    /// How long the broker waits for a word about a message; `None` if as long as there is a
    /// connection.
    const PATIENCE: Option<Duration>;
    /// Whether it counts deliveries.
    const COUNTS: bool;

    /// An empty one of its own on the server all tests share.
    fn open() -> impl Future<Output = Self> + Send;

    /// An empty one on a server of its own.
    fn alone() -> impl Future<Output = Self> + Send;

    fn server(&mut self) -> &mut Own;

    /// A topic whose events it takes.
    fn topic(&self) -> String;

    fn sink(&self) -> Self::Sink;

    fn source(&self) -> impl Future<Output = Self::Source> + Send;
}

macro_rules! source_conformance {
    ($world:ty) => {
        $crate::source::suite::cases! { $world:
            a_message_arrives_as_it_was_sent,
            what_is_done_is_not_delivered_again,
            what_is_put_back_comes_again_after_its_time,
            what_is_dropped_without_a_word_comes_again,
            two_consumers_share_the_messages,
            what_was_not_done_when_the_server_was_killed_comes_again,
        }
    };
}

macro_rules! source_patience {
    ($world:ty) => {
        $crate::source::suite::cases! { $world:
            nobody_else_gets_what_is_worked_on,
        }
    };
}

macro_rules! cases {
    ($world:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::source::suite::$case::<$world>().await;
            }
        )*
    };
}

pub(crate) use {cases, source_conformance, source_patience};

/// How long a message may take that has to come, on a machine that does much else.
const SOON: Duration = Duration::from_secs(120);
/// How long to wait for one that must not.
const WHILE: Duration = Duration::from_millis(1500);

pub(crate) type Got<S> = Delivery<<S as Source>::Receipt>;

pub(crate) async fn next<S: Source>(source: &mut S) -> Got<S> {
    let arrived = timeout(SOON, source.next()).await.expect("a message comes").unwrap();
    let Arrived::Message(delivery) = arrived else { panic!("these have no partitions and no end") };
    delivery
}

pub(crate) async fn nothing<S: Source>(source: &mut S, span: Duration) {
    if let Ok(arrived) = timeout(span, source.next()).await {
        panic!("{:?}", arrived.map(|_| "something came"));
    }
}

pub(crate) async fn send(sink: &impl Sink, events: &[Stored]) {
    assert_eq!(sink.send(events).await.unwrap(), vec![Verdict::Taken; events.len()]);
}

pub(crate) fn id(incoming: &Incoming) -> String {
    incoming.header("ce-id").expect("events have an id").to_owned()
}

fn ids(events: &[Stored]) -> BTreeSet<String> {
    events.iter().map(|event| event.id.to_string()).collect()
}

pub(crate) async fn a_message_arrives_as_it_was_sent<W: World>() {
    let world = W::open().await;
    let mut source = world.source().await;
    let mut binary = event(&world.topic(), "binary", vec![0, 1, 255]);
    binary.content_type = "application/octet-stream".to_owned();
    let events = [
        with_header(event(&world.topic(), "k\u{e4}se 100%", "{\"a\":1}"), "trace", "a=b; \u{2713}"),
        event(&world.topic(), "empty", ""),
        binary,
    ];
    send(&world.sink(), &events).await;
    for _ in &events {
        let delivery = next(&mut source).await;
        let incoming = &delivery.incoming;
        let event = events.iter().find(|event| event.id.to_string() == id(incoming)).unwrap();
        assert_eq!(incoming.payload, event.payload);
        assert_eq!(incoming.key.as_deref(), Some(event.key.as_str()));
        assert_eq!(incoming.header("ce-type"), Some(event.topic.as_str()));
        assert_eq!(incoming.header("content-type"), Some(event.content_type.as_str()));
        let trace = event.headers.first().map(|_| "a=b; \u{2713}");
        assert_eq!(incoming.header("trace"), trace);
        assert_eq!(incoming.deliveries, Some(1));
        delivery.receipt.settle(Disposition::Done).await.unwrap();
    }
}

pub(crate) async fn what_is_done_is_not_delivered_again<W: World>() {
    let world = W::open().await;
    let mut source = world.source().await;
    let events = turns(&world.topic(), 2, 3);
    send(&world.sink(), &events).await;
    let mut seen = BTreeSet::new();
    for _ in &events {
        let delivery = next(&mut source).await;
        assert!(seen.insert(id(&delivery.incoming)), "each comes once");
        delivery.receipt.settle(Disposition::Done).await.unwrap();
    }
    assert_eq!(seen, ids(&events));
    drop(source);
    let span = W::PATIENCE.map_or(WHILE, |patience| patience + WHILE);
    nothing(&mut world.source().await, span).await;
}

pub(crate) async fn what_is_put_back_comes_again_after_its_time<W: World>() {
    let world = W::open().await;
    let mut source = world.source().await;
    send(&world.sink(), &turns(&world.topic(), 1, 1)).await;
    let first = next(&mut source).await;
    let (begun, delay) = (Instant::now(), Duration::from_secs(1));
    first.receipt.settle(Disposition::Later(delay)).await.unwrap();
    let again = next(&mut source).await;
    let took = begun.elapsed();
    assert!(took > delay - Duration::from_millis(100), "it came after {took:?}");
    assert_eq!(id(&again.incoming), id(&first.incoming));
    assert_eq!(again.incoming.broker_id, first.incoming.broker_id);
    assert_eq!(again.incoming.deliveries, W::COUNTS.then_some(2));
    again.receipt.settle(Disposition::Done).await.unwrap();
}

pub(crate) async fn what_is_dropped_without_a_word_comes_again<W: World>() {
    let world = W::open().await;
    let mut source = world.source().await;
    send(&world.sink(), &turns(&world.topic(), 1, 1)).await;
    let first = id(&next(&mut source).await.incoming);
    let again = next(&mut source).await;
    assert_eq!(id(&again.incoming), first);
    again.receipt.settle(Disposition::Done).await.unwrap();
}

pub(crate) async fn two_consumers_share_the_messages<W: World>() {
    let world = W::open().await;
    let (mut one, mut other) = (world.source().await, world.source().await);
    let events = turns(&world.topic(), 60, 1);
    send(&world.sink(), &events).await;
    let mut seen = BTreeSet::new();
    for _ in &events {
        let delivery = tokio::select! {
            delivery = next(&mut one) => delivery,
            delivery = next(&mut other) => delivery,
        };
        assert!(seen.insert(id(&delivery.incoming)), "each comes to one of them");
        delivery.receipt.settle(Disposition::Done).await.unwrap();
    }
    assert_eq!(seen, ids(&events));
}

pub(crate) async fn nobody_else_gets_what_is_worked_on<W: World>() {
    let world = W::open().await;
    let (mut one, mut other) = (world.source().await, world.source().await);
    send(&world.sink(), &turns(&world.topic(), 1, 1)).await;
    let delivery = tokio::select! {
        delivery = next(&mut one) => delivery,
        delivery = next(&mut other) => delivery,
    };
    let patience = W::PATIENCE.expect("it runs out");
    for _ in 0..4 {
        assert_eq!(delivery.receipt.working().await.unwrap(), Some(patience));
        let both = async { tokio::join!(one.next(), other.next()) };
        assert!(timeout(patience / 2, both).await.is_err(), "it is worked on");
    }
    delivery.receipt.settle(Disposition::Done).await.unwrap();
}

pub(crate) async fn what_was_not_done_when_the_server_was_killed_comes_again<W: World>() {
    let mut world = W::alone().await;
    let mut source = world.source().await;
    let events = turns(&world.topic(), 20, 1);
    send(&world.sink(), &events).await;
    let mut left = ids(&events);
    let mut held = Vec::new();
    for turn in 0..10 {
        let delivery = next(&mut source).await;
        if turn % 2 == 0 {
            left.remove(&id(&delivery.incoming));
            delivery.receipt.settle(Disposition::Done).await.unwrap();
        } else {
            held.push(delivery);
        }
    }
    world.server().kill().await;
    world.server().revive().await;
    drop(held);
    // What was done may come too: not every broker has that on disk at once.
    while !left.is_empty() {
        let delivery = next(&mut source).await;
        if delivery.receipt.settle(Disposition::Done).await.is_ok() {
            left.remove(&id(&delivery.incoming));
        }
    }
}
