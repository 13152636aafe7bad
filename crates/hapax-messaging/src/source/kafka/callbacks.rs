//! The threads that wait for the library: one polls, the other commits.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use bytes::Bytes;
use hapax_core::Header;
use rdkafka::{
    ClientContext, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext},
    error::{KafkaError, RDKafkaErrorCode},
    message::{BorrowedMessage, Headers, Message},
    types::RDKafkaRespErr,
};

use super::mailbox::Mailbox;
use crate::consumer::{Incoming, Partition, Place};

/// How long a poll waits for something: as long as closing may take to be noticed.
const POLL: Duration = Duration::from_millis(100);
/// How long a group that is busy with itself is left alone.
const COMMIT_PAUSE: Duration = Duration::from_millis(50);

/// Hears what the group decides.
#[derive(Debug)]
pub(super) struct GroupCallbacks {
    pub(super) mailbox: Arc<Mailbox>,
}

impl ClientContext for GroupCallbacks {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "heard from the Kafka consumer");
    }
}

impl ConsumerContext for GroupCallbacks {
    /// Partitions are added when they are started, and given back when they are released: until then
    /// the group waits.
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        let partitions = partitions(list);
        let nothing = TopicPartitionList::new();
        let told = if self.mailbox.is_closed() {
            // Nobody is left to release anything.
            consumer.unassign()
        } else if what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            if !partitions.is_empty() {
                self.mailbox.assigned(partitions);
            }
            consumer.incremental_assign(&nothing)
        } else if partitions.is_empty() {
            consumer.incremental_unassign(&nothing)
        } else {
            self.mailbox.revoked(partitions, consumer.assignment_lost());
            Ok(())
        };
        if let Err(error) = told {
            tracing::warn!(%error, "Kafka did not hear what became of partitions");
        }
    }
}

/// Polls until the mailbox is closed, then leaves the group.
///
/// It polls however busy the consumer is, so that the group does not take it for dead.
pub(super) fn poll(consumer: Arc<BaseConsumer<GroupCallbacks>>) {
    let mailbox = Arc::clone(&consumer.context().mailbox);
    while !mailbox.is_closed() {
        match consumer.poll(POLL) {
            None => {}
            Some(Ok(message)) => {
                let (place, incoming) = read(&message);
                mailbox.fetched(&place.partition, place.offset, incoming);
            }
            Some(Err(error @ KafkaError::MessageConsumptionFatal(_))) => mailbox.failed(error),
            Some(Err(error)) => tracing::warn!(%error, "Kafka delivers nothing for now"),
        }
        mailbox.balance();
    }
    drop(consumer);
}

/// Commits whenever the bell was rung, for all who rang it meanwhile at once, until nobody can ring it
/// any more.
pub(super) fn commit(mailbox: &Mailbox, bell: &mpsc::Receiver<()>) {
    while bell.recv().is_ok() {
        while let Some((places, list)) = mailbox.to_commit() {
            let Some(consumer) = mailbox.consumer() else { return };
            let committed = consumer.commit(&list, CommitMode::Sync);
            match &committed {
                Err(KafkaError::ConsumerCommit(code)) if is_passing(*code) => {
                    mailbox.uncommitted(&places);
                    thread::sleep(COMMIT_PAUSE);
                }
                Ok(()) | Err(_) => mailbox.committed(&places, &committed),
            }
        }
    }
}

/// Whether the group is only busy with itself: the partitions are still ours.
fn is_passing(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::CoordinatorLoadInProgress
            | RDKafkaErrorCode::CoordinatorNotAvailable
            | RDKafkaErrorCode::IllegalGeneration
            | RDKafkaErrorCode::NotCoordinator
            | RDKafkaErrorCode::RebalanceInProgress
            | RDKafkaErrorCode::WaitingForCoordinator
    )
}

fn read(message: &BorrowedMessage<'_>) -> (Place, Incoming) {
    let (topic, offset) = (message.topic().to_owned(), message.offset());
    let partition = Partition { source: topic.clone(), number: message.partition() };
    let place = Place { partition, offset };
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let bytes = |bytes: Option<&[u8]>| bytes.map(Bytes::copy_from_slice).unwrap_or_default();
    let header = |header: rdkafka::message::Header<'_, &[u8]>| Header {
        name: header.key.to_owned(),
        value: bytes(header.value),
    };
    let incoming = Incoming {
        source: topic,
        broker_id: Some(format!("{}/{offset}", place.partition)),
        key: message.key().and_then(text),
        payload: bytes(message.payload()),
        headers: message.headers().map(|all| all.iter().map(header).collect()).unwrap_or_default(),
        deliveries: None,
        place: Some(place.clone()),
    };
    (place, incoming)
}

fn partitions(list: &TopicPartitionList) -> Vec<Partition> {
    let places = list.elements();
    let partition = |topic: &str, number| Partition { source: topic.to_owned(), number };
    places.iter().map(|place| partition(place.topic(), place.partition())).collect()
}
