//! Events handed to a producer together, and what it says of each.

use std::{collections::HashSet, time::Duration};

use hapax_core::outbox::Stored;
use rdkafka::{
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{
        FutureRecord,
        future_producer::{DeliveryFuture, OwnedDeliveryResult},
    },
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{KafkaOptions, ProducerTrouble, producer::EventProducer};
use crate::sink::cloudevent;

/// Longest name of a topic of Kafka's, in bytes.
const TOPIC_BYTES_MAX: usize = 249;
/// How long to wait for room in the producer's queue before looking again.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);
/// How long a producer that failed may take to say of what was on its way that it arrived.
const FAILURE_PATIENCE: Duration = Duration::from_millis(300);
/// How long a producer that was told to drop everything may take to say so.
const PURGE_PATIENCE: Duration = Duration::from_secs(1);

/// Events of a call that are handed over together.
#[derive(Clone, Copy)]
pub(super) struct Round<'a> {
    pub(super) producer: &'a EventProducer,
    pub(super) options: &'a KafkaOptions,
    pub(super) events: &'a [Stored],
    /// Which of the events.
    pub(super) open: &'a [usize],
    pub(super) end: Instant,
}

/// What the producer said of an event.
#[derive(Debug, Clone)]
pub(super) enum ProducedFate {
    Taken,
    Refused(String),
    /// The batch it was in was refused, perhaps for the sake of another.
    Suspect(String),
    /// It is not there: it was not handed over, or taken back.
    Unsent,
    /// Nobody knows.
    Lost(ProducerTrouble),
}

impl Round<'_> {
    /// Hands over all of it at once, in order, and waits until everything is decided.
    ///
    /// Of one key, what is taken is always a beginning: the producer appends in order and stops for
    /// good where it cannot.
    pub(super) async fn carry(self) -> Vec<ProducedFate> {
        let mut call = PendingCall { producer: self.producer, over: false };
        let mut handed = Vec::with_capacity(self.open.len());
        let mut held = HashSet::new();
        for event in self.open.iter().map(|at| &self.events[*at]) {
            let key = (event.topic.as_str(), event.key.as_str());
            if held.contains(&key) {
                handed.push(Err(ProducedFate::Unsent));
                continue;
            }
            let delivery = self.hand_over(event).await;
            if delivery.is_err() {
                held.insert(key);
            }
            handed.push(delivery);
        }
        let mut fates = Vec::with_capacity(handed.len());
        for delivery in handed {
            fates.push(match delivery {
                Ok(delivery) => self.hear(delivery).await,
                Err(fate) => fate,
            });
        }
        call.over = true;
        fates
    }

    async fn hand_over(&self, event: &Stored) -> Result<DeliveryFuture, ProducedFate> {
        let topic = format!("{}{}", self.options.topic_prefix, event.topic);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if topic.len() > TOPIC_BYTES_MAX
            || !topic.bytes().all(fits)
            || topic.trim_matches('.').is_empty()
        {
            return Err(ProducedFate::Refused(format!("Kafka has no topic called `{topic}`")));
        }
        let mut record = FutureRecord::to(&topic)
            .key(event.key.as_bytes())
            .payload(event.payload.as_ref())
            .headers(self.headers(event));
        loop {
            match self.producer.inner.send_result(record) {
                Ok(delivery) => return Ok(delivery),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                    if Instant::now() < self.end && !self.producer.is_spent() =>
                {
                    record = back;
                    sleep(QUEUE_PAUSE).await;
                }
                // Found out here, before it was with others.
                Err((KafkaError::MessageProduction(code), _)) if is_refusal_of_a_batch(code) => {
                    return Err(ProducedFate::Refused(code.to_string()));
                }
                Err((error, _)) => return Err(self.judge(error)),
            }
        }
    }

    fn headers(&self, event: &Stored) -> OwnedHeaders {
        let mut headers = OwnedHeaders::new_with_capacity(event.headers.len() + 7);
        let content_type = event.content_type.as_bytes();
        headers = headers.insert(Header { key: "content-type", value: Some(content_type) });
        for (attribute, value) in self.options.events.attributes(event) {
            let value = Some(value.as_bytes());
            headers = headers.insert(Header { key: attribute.underscored(), value });
        }
        for (key, value) in cloudevent::own_headers(event, &[]) {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        headers
    }

    /// Waits for what became of an event, for as long as there is hope.
    async fn hear(&self, mut delivery: DeliveryFuture) -> ProducedFate {
        let trouble = tokio::select! {
            biased;
            told = &mut delivery => return self.fate(told.ok()),
            trouble = self.producer.spent() => trouble,
            () = sleep_until(self.end) => ProducerTrouble::Silent,
        };
        if let ProducerTrouble::Failed(_) = trouble
            && let Ok(told) = timeout(FAILURE_PATIENCE, &mut delivery).await
        {
            return self.fate(told.ok());
        }
        self.producer.retire(trouble);
        match timeout(PURGE_PATIENCE, delivery).await {
            Ok(told) => self.fate(told.ok()),
            Err(_) => ProducedFate::Lost(self.producer.spent().await),
        }
    }

    fn fate(&self, told: Option<OwnedDeliveryResult>) -> ProducedFate {
        match told {
            Some(Ok(_)) => ProducedFate::Taken,
            Some(Err((error, _))) => self.judge(error),
            None => ProducedFate::Lost(ProducerTrouble::GivenUp),
        }
    }

    fn judge(&self, error: KafkaError) -> ProducedFate {
        match error.rdkafka_error_code() {
            Some(code) if is_refusal(code) => ProducedFate::Refused(code.to_string()),
            Some(code) if is_refusal_of_a_batch(code) => ProducedFate::Suspect(code.to_string()),
            // Dropped for the sake of others: of those in its batch or in its transaction, unless the
            // producer was given up.
            Some(
                RDKafkaErrorCode::PurgeQueue
                | RDKafkaErrorCode::PurgeInflight
                | RDKafkaErrorCode::InvalidDifferentRecord,
            ) => self.producer.trouble().map_or(ProducedFate::Unsent, ProducedFate::Lost),
            _ => {
                self.producer.retire(ProducerTrouble::Failed(error));
                ProducedFate::Lost(self.producer.trouble().unwrap_or(ProducerTrouble::GivenUp))
            }
        }
    }
}

/// Whether this says that the brokers do not want the event, now or later.
fn is_refusal(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::InvalidTopic
            | RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownTopicOrPartition
    )
}

/// Whether this says that they do not want the event or another one that was sent along with it.
fn is_refusal_of_a_batch(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::InvalidMessageSize
            | RDKafkaErrorCode::InvalidRecord
            | RDKafkaErrorCode::InvalidTimestamp
            | RDKafkaErrorCode::MessageBatchTooLarge
            | RDKafkaErrorCode::MessageSizeTooLarge
            | RDKafkaErrorCode::PolicyViolation
    )
}

/// A call under way. Dropped before it is over, it takes its producer with it: what it queued would
/// be sent at some later time, when nobody expects it.
struct PendingCall<'a> {
    producer: &'a EventProducer,
    over: bool,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.producer.retire(ProducerTrouble::GivenUp);
        }
    }
}
