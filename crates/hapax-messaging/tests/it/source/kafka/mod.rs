//! Messages of a real Kafka.

mod consumers;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use hapax_core::outbox::Stored;
use hapax_messaging::{
    consumer::{Arrived, Delivery, Disposition, Incoming, Partition, Receipt, Source},
    sink::{KafkaOptions as SinkOptions, Sink, Verdict},
    source::kafka::{Kafka, KafkaOptions, KafkaReceipt},
};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
};
use tokio::time::{Instant, timeout};

use crate::sink::{
    kafka::cluster::Topic,
    world::{event, turns, with_header},
};

/// How long something may take that has to come; joining a group takes seconds.
const SOON: Duration = Duration::from_secs(120);
/// How long to wait for something that must not.
const WHILE: Duration = Duration::from_millis(1500);

type Got = Delivery<KafkaReceipt>;

/// A member of a topic's group.
async fn join(topic: &Topic) -> Kafka {
    let mut options = KafkaOptions::new(&topic.brokers, format!("of-{}", topic.name), &topic.name);
    options.settings = BTreeMap::from([("session.timeout.ms".to_owned(), "6000".to_owned())]);
    Kafka::open(&options).await.unwrap()
}

async fn send(topic: &Topic, events: &[Stored]) {
    let sent = topic.sink(SinkOptions::default()).send(events).await.unwrap();
    assert_eq!(sent, vec![Verdict::Taken; events.len()]);
}

async fn arrival(source: &mut Kafka) -> Arrived<KafkaReceipt> {
    timeout(SOON, source.next()).await.expect("something comes").unwrap()
}

/// The next message; partitions are started and let go on the way.
async fn message(source: &mut Kafka) -> Got {
    loop {
        match arrival(source).await {
            Arrived::Message(delivery) => return delivery,
            Arrived::Assigned(partitions) => start(source, &partitions).await,
            Arrived::Revoked(partitions) => source.release(&partitions).await.unwrap(),
            Arrived::End => panic!("a topic has no end"),
        }
    }
}

async fn start(source: &mut Kafka, partitions: &[Partition]) {
    for partition in partitions {
        source.start(partition, None).await.unwrap();
    }
}

/// Waits until all partitions are this member's, and for a while longer: no message comes.
async fn nothing(source: &mut Kafka) {
    let mut started = 0;
    while started < 3 {
        match arrival(source).await {
            Arrived::Assigned(partitions) => {
                start(source, &partitions).await;
                started += partitions.len();
            }
            Arrived::Message(delivery) => panic!("{:?} came", delivery.incoming),
            other @ (Arrived::Revoked(_) | Arrived::End) => panic!("{other:?}"),
        }
    }
    if let Ok(arrived) = timeout(WHILE, source.next()).await {
        panic!("{arrived:?}");
    }
}

async fn done(delivery: Got) {
    delivery.receipt.settle(Disposition::Done).await.unwrap();
}

fn id(incoming: &Incoming) -> String {
    incoming.header("ce_id").expect("events have an id").to_owned()
}

fn ids(events: &[Stored]) -> BTreeSet<String> {
    events.iter().map(|event| event.id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_arrives_as_it_was_sent_and_once() {
    let topic = Topic::on_shared(&[("retention.ms", "90000000")]).await;
    let mut source = join(&topic).await;
    let mut binary = event(&topic.name, "binary", vec![0, 1, 255]);
    binary.content_type = "application/octet-stream".to_owned();
    let events = [
        with_header(event(&topic.name, "k\u{e4}se 100%", "{\"a\":1}"), "trace", "a=b; \u{2713}"),
        event(&topic.name, "empty", ""),
        binary,
    ];
    send(&topic, &events).await;
    for _ in &events {
        let delivery = message(&mut source).await;
        let incoming = &delivery.incoming;
        let event = events.iter().find(|event| event.id.to_string() == id(incoming)).unwrap();
        assert_eq!(incoming.payload, event.payload);
        assert_eq!(incoming.source, topic.name);
        assert_eq!(incoming.key.as_deref(), Some(event.key.as_str()));
        assert_eq!(incoming.header("content-type"), Some(event.content_type.as_str()));
        assert_eq!(incoming.header("trace"), event.headers.first().map(|_| "a=b; \u{2713}"));
        assert_eq!(incoming.deliveries, None, "Kafka does not count");
        let place = incoming.place.as_ref().unwrap();
        let name = format!("{}/{}/{}", topic.name, place.partition.number, place.offset);
        assert_eq!(incoming.broker_id, Some(name));
        done(delivery).await;
    }
    assert_eq!(source.longest_redelivery(), Some(Duration::from_secs(90_000)));
    drop(source);
    nothing(&mut join(&topic).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_back_comes_again_after_its_time_and_nothing_behind_it_before() {
    let topic = Topic::on_shared(&[]).await;
    let mut source = join(&topic).await;
    let events = turns(&topic.name, 1, 3);
    send(&topic, &events).await;
    let first = message(&mut source).await;
    let (begun, delay) = (Instant::now(), Duration::from_secs(1));
    let name = id(&first.incoming);
    first.receipt.settle(Disposition::Later(delay)).await.unwrap();
    let again = message(&mut source).await;
    assert_eq!(id(&again.incoming), name, "nothing overtakes it");
    assert!(begun.elapsed() >= delay, "it came after {:?}", begun.elapsed());
    done(again).await;
    // Dropped without a word, the second comes again too.
    let second = id(&message(&mut source).await.incoming);
    let again = message(&mut source).await;
    assert_eq!((&id(&again.incoming), &second), (&second, &events[1].id.to_string()));
    done(again).await;
    let third = message(&mut source).await;
    assert_eq!(id(&third.incoming), events[2].id.to_string());
    done(third).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_are_committed_up_to_the_first_message_that_is_not_done() {
    let topic = Topic::on_shared(&[]).await;
    let mut source = join(&topic).await;
    let events = turns(&topic.name, 1, 4);
    send(&topic, &events).await;
    done(message(&mut source).await).await;
    let second = message(&mut source).await;
    for _ in 2..4 {
        done(message(&mut source).await).await;
    }
    drop(source);
    let late = second.receipt.settle(Disposition::Done).await;
    late.expect_err("whoever left the group cannot commit");
    let mut source = join(&topic).await;
    for event in &events[1..] {
        let delivery = message(&mut source).await;
        assert_eq!(id(&delivery.incoming), event.id.to_string());
        done(delivery).await;
    }
    drop(source);
    nothing(&mut join(&topic).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_moves_when_what_was_begun_in_it_is_finished() {
    let topic = Topic::on_shared(&[]).await;
    let events = turns(&topic.name, 30, 1);
    send(&topic, &events).await;
    let mut old = join(&topic).await;
    let mut begun = Vec::new();
    for _ in 0..15 {
        begun.push(message(&mut old).await);
    }
    let mut new = join(&topic).await;
    let revoked = loop {
        match arrival(&mut old).await {
            Arrived::Revoked(partitions) => break partitions,
            Arrived::Message(delivery) => begun.push(delivery),
            other @ (Arrived::Assigned(_) | Arrived::End) => panic!("{other:?}"),
        }
    };
    let is_revoked = |delivery: &Got| {
        let place = delivery.incoming.place.as_ref().unwrap();
        revoked.contains(&place.partition)
    };
    // As long as they are not released they are nobody else's.
    if let Ok(arrived) = timeout(WHILE, new.next()).await {
        panic!("{arrived:?}");
    }
    let mut seen = BTreeSet::new();
    let (moving, staying): (Vec<_>, Vec<_>) = begun.into_iter().partition(is_revoked);
    for delivery in moving {
        assert!(seen.insert(id(&delivery.incoming)));
        done(delivery).await;
    }
    old.release(&revoked).await.unwrap();
    for delivery in staying {
        assert!(seen.insert(id(&delivery.incoming)));
        done(delivery).await;
    }
    let mut moved = 0;
    while seen.len() < events.len() {
        let delivery = tokio::select! {
            delivery = message(&mut old) => delivery,
            delivery = message(&mut new) => {
                moved += 1;
                assert!(is_revoked(&delivery));
                delivery
            }
        };
        assert!(seen.insert(id(&delivery.incoming)), "what is done comes to nobody again");
        done(delivery).await;
    }
    assert_eq!(seen, ids(&events));
    // Whatever the new one was given, it has: it takes part in what comes from now on.
    let more = turns(&topic.name, 30, 1);
    send(&topic, &more).await;
    for _ in &more {
        let delivery = tokio::select! {
            delivery = message(&mut old) => delivery,
            delivery = message(&mut new) => { moved += 1; delivery }
        };
        done(delivery).await;
    }
    assert!(moved > 0, "the new member works");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_dies_is_replaced_and_its_messages_come_again() {
    let topic = Topic::on_shared(&[]).await;
    let events = turns(&topic.name, 12, 1);
    send(&topic, &events).await;
    let mut dying = join(&topic).await;
    let held = [message(&mut dying).await, message(&mut dying).await];
    let mut other = join(&topic).await;
    drop(dying);
    let mut seen = BTreeSet::new();
    while seen.len() < events.len() {
        let delivery = message(&mut other).await;
        assert!(seen.insert(id(&delivery.incoming)));
        done(delivery).await;
    }
    assert_eq!(seen, ids(&events), "{} of them were held by the one that died", held.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_started_from_an_offset_of_ones_own_is_not_committed() {
    let topic = Topic::on_shared(&[]).await;
    let events = turns(&topic.name, 1, 4);
    send(&topic, &events).await;
    let mut source = join(&topic).await;
    let Arrived::Assigned(partitions) = arrival(&mut source).await else { panic!("not first") };
    for partition in &partitions {
        source.start(partition, Some(2)).await.unwrap();
    }
    for event in &events[2..] {
        let delivery = message(&mut source).await;
        assert_eq!(id(&delivery.incoming), event.id.to_string());
        done(delivery).await;
    }
    drop(source);
    let (brokers, name) = (topic.brokers.clone(), topic.name.clone());
    let committed = tokio::task::spawn_blocking(move || committed(&brokers, &name));
    assert_eq!(committed.await.unwrap(), vec![Offset::Invalid; 3]);
}

fn committed(brokers: &str, topic: &str) -> Vec<Offset> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("group.id", format!("of-{topic}"));
    let consumer: BaseConsumer = config.create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, 2);
    let found = consumer.committed_offsets(list, SOON).unwrap();
    found
        .elements()
        .iter()
        .map(rdkafka::topic_partition_list::TopicPartitionListElem::offset)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_done_when_the_broker_was_killed_comes_again() {
    let mut topic = Topic::alone().await;
    let mut source = join(&topic).await;
    let events = turns(&topic.name, 20, 1);
    send(&topic, &events).await;
    let mut left = ids(&events);
    for _ in 0..10 {
        let delivery = message(&mut source).await;
        left.remove(&id(&delivery.incoming));
        done(delivery).await;
    }
    let held = message(&mut source).await;
    topic.own.as_mut().unwrap().kill().await;
    topic.own.as_mut().unwrap().revive().await;
    drop(held);
    while !left.is_empty() {
        let delivery = message(&mut source).await;
        let name = id(&delivery.incoming);
        if delivery.receipt.settle(Disposition::Done).await.is_ok() {
            left.remove(&name);
        }
    }
    drop(source);
    nothing(&mut join(&topic).await).await;
}

#[tokio::test]
async fn settings_that_order_rests_on_are_not_for_users() {
    for name in ["enable.auto.commit", "partition.assignment.strategy"] {
        let mut options = KafkaOptions::new("127.0.0.1:1", "group", "topic");
        options.settings = BTreeMap::from([(name.to_owned(), "range".to_owned())]);
        Kafka::open(&options).await.expect_err(name);
    }
}
