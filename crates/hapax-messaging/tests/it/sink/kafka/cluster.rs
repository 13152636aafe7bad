//! A topic of its own on a real Kafka, read by a consumer that is not ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use hapax_messaging::sink::{CloudEvents, Kafka, KafkaOptions};
use hapax_services::{kafka, roster::Service};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::{Headers, Message},
};
use tokio::task::spawn_blocking;

use crate::{
    servers::{Own, shared, unique},
    sink::world::Arrived,
};

const PARTITIONS: i32 = 3;
const READ_LIMIT: Duration = Duration::from_secs(120);

pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) brokers: String,
    pub(crate) own: Option<Own>,
    read: BTreeMap<i32, i64>,
}

impl Topic {
    /// On the Kafka that all tests share.
    pub(crate) async fn on_shared(settings: &[(&str, &str)]) -> Self {
        Self::on(&shared(Service::Kafka), None, settings).await
    }

    /// On a Kafka of its own.
    pub(crate) async fn alone() -> Self {
        let own = Own::start(kafka::start).await;
        let url = own.url().to_owned();
        Self::on(&url, Some(own), &[]).await
    }

    async fn on(url: &str, own: Option<Own>, settings: &[(&str, &str)]) -> Self {
        let brokers = url.strip_prefix("kafka://").unwrap().to_owned();
        let name = unique("sink");
        let admin: AdminClient<_> = config(&brokers).create().unwrap();
        let mut topic = NewTopic::new(&name, PARTITIONS, TopicReplication::Fixed(1));
        for (name, value) in settings {
            topic = topic.set(name, value);
        }
        let options = AdminOptions::new().operation_timeout(Some(READ_LIMIT));
        admin.create_topics([&topic], &options).await.unwrap().remove(0).unwrap();
        Self { name, brokers, own, read: BTreeMap::new() }
    }

    pub(crate) fn sink(&self, options: KafkaOptions) -> Kafka {
        let events = CloudEvents::from_source("/suite").unwrap();
        Kafka::new(&self.brokers, KafkaOptions { events, ..options }).unwrap()
    }

    /// All that is committed and was not read before.
    pub(crate) async fn arrived(&mut self) -> Vec<Arrived> {
        let (brokers, name, from) = (self.brokers.clone(), self.name.clone(), self.read.clone());
        let read = spawn_blocking(move || read(&brokers, &name, &from)).await.unwrap();
        let (arrived, read) = read;
        self.read.extend(read);
        arrived
    }
}

fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    config
}

/// Reads to the end of every partition; the next offset of each.
fn read(
    brokers: &str,
    topic: &str,
    from: &BTreeMap<i32, i64>,
) -> (Vec<Arrived>, BTreeMap<i32, i64>) {
    let mut config = config(brokers);
    config.set("group.id", "not-used").set("enable.partition.eof", "true");
    config.set("isolation.level", "read_committed").set("check.crcs", "true");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut places = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        let offset = from.get(&partition).map_or(Offset::Beginning, |next| Offset::Offset(*next));
        places.add_partition_offset(topic, partition, offset).unwrap();
    }
    consumer.assign(&places).unwrap();
    let (mut arrived, mut next, mut ended) = (Vec::new(), from.clone(), BTreeSet::new());
    while ended.len() < PARTITIONS as usize {
        match consumer.poll(READ_LIMIT).expect("the broker answers in time") {
            Ok(message) => {
                next.insert(message.partition(), message.offset() + 1);
                arrived.push(found(&message));
            }
            Err(KafkaError::PartitionEOF(partition)) => drop(ended.replace(partition)),
            Err(error) => panic!("cannot read back: {error}"),
        }
    }
    (arrived, next)
}

fn found(message: &impl Message) -> Arrived {
    let headers = message.headers().unwrap();
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
    let mut found: BTreeMap<_, _> =
        headers.iter().map(|header| (header.key.to_owned(), text(header.value))).collect();
    assert_eq!(found.len(), headers.count(), "no header is there twice");
    let content_type = found.remove("content-type").unwrap();
    let payload = message.payload().unwrap_or_default().to_vec();
    let arrived = Arrived::from_headers(found, "ce_", content_type, payload);
    assert_eq!(message.key(), Some(arrived.subject.as_bytes()));
    arrived
}
