use std::{collections::BTreeSet, time::Duration};

use hapax_messaging::{audit::Audit, sink::KafkaAddress};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    message::Headers,
};

use super::arrive;
use crate::audit::error::AuditError;

/// How long the brokers may be silent before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything in the topics that were emitted to, from the first record of each partition to what
/// is the last one now. Commits nothing, and joins no group.
pub(super) async fn read(
    audit: &mut Audit,
    address: &KafkaAddress,
    prefix: &str,
) -> Result<(), AuditError> {
    let topics: Vec<_> = audit.topics().iter().map(|topic| format!("{prefix}{topic}")).collect();
    let (address, mut told) = (address.clone(), std::mem::take(audit));
    let reading = tokio::task::spawn_blocking(move || {
        let consumer = consumer(&address)?;
        topics.iter().try_for_each(|topic| read_topic(&mut told, &consumer, topic))?;
        Ok::<_, KafkaError>(told)
    });
    *audit = reading.await.map_err(AuditError::at)?.map_err(AuditError::at)?;
    Ok(())
}

fn consumer(address: &KafkaAddress) -> Result<BaseConsumer, KafkaError> {
    let mut config = ClientConfig::new();
    config.extend(address.settings().clone());
    config
        .set("bootstrap.servers", address.brokers())
        .set("group.id", "hapax-audit")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", "read_committed")
        .create()
}

fn read_topic(audit: &mut Audit, consumer: &BaseConsumer, topic: &str) -> Result<(), KafkaError> {
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE)?;
    let (mut list, mut open) = (TopicPartitionList::new(), BTreeSet::new());
    let partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
    for partition in partitions.map(|partition| partition.id()) {
        list.add_partition_offset(topic, partition, Offset::Beginning)?;
        open.insert(partition);
    }
    consumer.assign(&list)?;
    while !open.is_empty() {
        match consumer.poll(PATIENCE) {
            None => {
                return Err(KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut));
            }
            Some(Ok(message)) => arrived(audit, &message),
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                open.remove(&partition);
            }
            Some(Err(error)) => return Err(error),
        }
    }
    consumer.unassign()
}

fn arrived(audit: &mut Audit, message: &impl Message) {
    let header = |name: &str| {
        let mut found = message.headers()?.iter().filter(|header| header.key == name);
        String::from_utf8(found.next()?.value?.to_vec()).ok()
    };
    arrive(audit, header("ce_id").as_deref(), header("ce_type"), header("ce_subject"));
}
