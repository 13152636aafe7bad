//! Kafka, by an idempotent producer: what is sent twice by the network is appended once, and nothing
//! of a key overtakes anything before it.
//!
//! - `producer`: a producer, until it fails;
//! - `round`: events handed to a producer together, and what it says of each;
//! - `transaction`: the same, all or none of it visible;
//! - `round_ledger`: what is known of each event of a call.

mod producer;
mod round;
mod round_ledger;
mod transaction;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hapax_core::outbox::Stored;
use rdkafka::{ClientConfig, error::KafkaError};
use tokio::time::{Instant, timeout_at};

use self::{
    producer::EventProducer,
    round::Round,
    round_ledger::{RoundLedger, RoundRest},
};
use crate::sink::{CloudEvents, Outage, Sink, Verdict};

/// Appends events to topics of Kafka. A key always goes to the same partition, the one that Java's
/// clients would choose.
///
/// An event is taken once all replicas that are in sync have it. A topic that is not there is made,
/// if the brokers allow it. The record's headers are the attributes of a CloudEvent (`ce_id` and so
/// on), `content-type`, and the event's own.
///
/// ```no_run
/// use hapax_messaging::sink::{Kafka, KafkaOptions};
///
/// let options = KafkaOptions { topic_prefix: "shop.".to_owned(), ..KafkaOptions::default() };
/// let sink = Kafka::new("broker-1:9092,broker-2:9092", options)?;
/// # drop(sink);
/// # Ok::<(), hapax_messaging::sink::InvalidKafka>(())
/// ```
#[derive(Debug)]
pub struct Kafka {
    config: ClientConfig,
    options: KafkaOptions,
    producer: Mutex<Option<Arc<EventProducer>>>,
    /// A producer has one transaction at a time.
    turn: tokio::sync::Mutex<()>,
}

/// How [`Kafka`] sends.
///
/// ```
/// use hapax_messaging::sink::KafkaOptions;
///
/// let mut options = KafkaOptions::default();
/// options.settings.insert("compression.type".to_owned(), "zstd".to_owned());
/// assert!(options.transactional_id.is_none());
/// ```
#[derive(Debug, Clone)]
pub struct KafkaOptions {
    /// Where events say they come from.
    pub events: CloudEvents,
    /// What stands before an event's topic in the name of Kafka's.
    pub topic_prefix: String,
    /// How long a call may take until it is an outage.
    pub call_timeout: Duration,
    /// Makes each call one transaction of Kafka's: those who read only what is committed see all of
    /// it or nothing. Every running sink needs an id of its own; two with the same one shut each
    /// other out.
    pub transactional_id: Option<String>,
    /// Settings of librdkafka, as it calls them: `security.protocol`, `compression.type` and others.
    /// Those that order rests on are ours.
    pub settings: BTreeMap<String, String>,
}

impl Default for KafkaOptions {
    /// Topics as they are, ten seconds for a call, no transactions.
    fn default() -> Self {
        Self {
            events: CloudEvents::default(),
            topic_prefix: String::new(),
            call_timeout: Duration::from_secs(10),
            transactional_id: None,
            settings: BTreeMap::new(),
        }
    }
}

/// What order and safety rest on. Nothing expires by itself: an event that is given up while those
/// behind it are sent would be overtaken.
const OURS: [(&str, &str); 5] = [
    ("enable.idempotence", "true"),
    ("enable.gapless.guarantee", "true"),
    ("acks", "all"),
    ("message.timeout.ms", "0"),
    ("partitioner", "murmur2_random"),
];

/// What may be said otherwise.
const USUAL: [(&str, &str); 5] = [
    ("linger.ms", "1"),
    // Brokers limit batches, not events: many small ones must never make one that is too large.
    ("batch.size", "262144"),
    ("queue.buffering.max.messages", "1000000"),
    ("reconnect.backoff.max.ms", "1000"),
    ("topic.metadata.propagation.max.ms", "5000"),
];

impl Kafka {
    /// A sink to the cluster these brokers belong to: `host:port`, more of them after commas.
    ///
    /// Nobody is asked yet: brokers that are not there are an [`Outage`] of the first call.
    pub fn new(brokers: &str, options: KafkaOptions) -> Result<Self, InvalidKafka> {
        let mut config = ClientConfig::new();
        for (name, value) in USUAL {
            config.set(name, value);
        }
        for (name, value) in &options.settings {
            let ours = OURS.iter().any(|(ours, _)| ours == name);
            if ours || matches!(name.as_str(), "bootstrap.servers" | "transactional.id") {
                return Err(InvalidKafka::Ours { name: name.clone() });
            }
            config.set(name, value);
        }
        for (name, value) in OURS {
            config.set(name, value);
        }
        config.set("bootstrap.servers", brokers);
        if let Some(id) = &options.transactional_id {
            // Whatever fails takes all of its transaction with it, so what expires is not overtaken.
            let within = options.call_timeout.as_millis().to_string();
            config.set("transactional.id", id);
            config.set("message.timeout.ms", &within).set("transaction.timeout.ms", within);
        }
        let producer = EventProducer::open(&config).map_err(InvalidKafka::Settings)?;
        let (producer, turn) = (Mutex::new(Some(producer)), tokio::sync::Mutex::new(()));
        Ok(Self { config, options, producer, turn })
    }

    /// The producer to send by: a new one, if the last one failed.
    fn producer(&self) -> Result<Arc<EventProducer>, ProducerTrouble> {
        let mut slot = self.producer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(producer) = slot.as_ref().filter(|producer| !producer.is_spent()) {
            return Ok(Arc::clone(producer));
        }
        let producer = EventProducer::open(&self.config).map_err(ProducerTrouble::Failed)?;
        if let Some(spent) = slot.replace(Arc::clone(&producer)) {
            spent.put_away();
        }
        Ok(producer)
    }

    /// Hands over everything at once. Only where brokers refuse some of it, one after the other.
    async fn send_at_once(&self, events: &[Stored], end: Instant) -> Result<Vec<Verdict>, Outage> {
        let mut ledger = RoundLedger::of(events);
        for last in [false, false, true] {
            let open = ledger.open();
            let producer = self.producer().map_err(Outage::new)?;
            let fates = self.round(&producer, &ledger, &open, end).carry().await;
            match ledger.enter(&open, fates, false) {
                RoundRest::Known => break,
                RoundRest::Suspects => return self.send_one_by_one(ledger, end).await,
                // Another call's event was refused, and took the producer with it.
                RoundRest::Lost(ProducerTrouble::Failed(_)) if !last => {}
                RoundRest::Lost(trouble) => return Err(Outage::new(trouble)),
            }
        }
        Ok(ledger.close())
    }

    /// Finds out which events brokers refuse: by a producer of its own, which survives that, each
    /// event after the one before it was taken or refused.
    async fn send_one_by_one(
        &self,
        mut ledger: RoundLedger<'_>,
        end: Instant,
    ) -> Result<Vec<Verdict>, Outage> {
        let mut config = self.config.clone();
        config.set("enable.gapless.guarantee", "false").set("linger.ms", "0");
        let producer = Own(EventProducer::open(&config)
            .map_err(|error| Outage::new(ProducerTrouble::Failed(error)))?);
        while let Some(next) = ledger.open().first().copied() {
            if Instant::now() >= end {
                break;
            }
            let fates = self.round(&producer.0, &ledger, &[next], end).carry().await;
            if let RoundRest::Lost(trouble) = ledger.enter(&[next], fates, true) {
                return Err(Outage::new(trouble));
            }
        }
        Ok(ledger.close())
    }

    /// Sends everything as one transaction. Only where brokers refuse some of it, as more and more
    /// of them, until each that is refused is alone.
    async fn send_together(&self, events: &[Stored], end: Instant) -> Result<Vec<Verdict>, Outage> {
        let mut ledger = RoundLedger::of(events);
        let mut groups = vec![(0..events.len()).collect::<HashSet<_>>()];
        while let Some(group) = groups.pop() {
            let open: Vec<_> = ledger.open().into_iter().filter(|at| group.contains(at)).collect();
            if open.is_empty() {
                continue;
            }
            if Instant::now() >= end {
                break;
            }
            let producer = self.producer().map_err(Outage::new)?;
            let round = self.round(&producer, &ledger, &open, end);
            let fates = transaction::carry(&producer, round).await.map_err(Outage::new)?;
            match ledger.enter(&open, fates, open.len() == 1) {
                // Those that were sent along with a refused one, if there was one.
                RoundRest::Known => groups.push(group),
                RoundRest::Suspects => {
                    let (first, second) = open.split_at(open.len() / 2);
                    groups.extend([second, first].map(|half| half.iter().copied().collect()));
                }
                RoundRest::Lost(trouble) => return Err(Outage::new(trouble)),
            }
        }
        Ok(ledger.close())
    }

    fn round<'a>(
        &'a self,
        producer: &'a EventProducer,
        ledger: &RoundLedger<'a>,
        open: &'a [usize],
        end: Instant,
    ) -> Round<'a> {
        Round { producer, options: &self.options, events: ledger.events, open, end }
    }
}

impl Sink for Kafka {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        let end = Instant::now() + self.options.call_timeout;
        if self.options.transactional_id.is_none() {
            return self.send_at_once(events, end).await;
        }
        match timeout_at(end, self.turn.lock()).await {
            Ok(_turn) => self.send_together(events, end).await,
            Err(_) => Err(Outage::new(ProducerTrouble::Silent)),
        }
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        let producer = self.producer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(producer) = producer {
            producer.put_away();
        }
    }
}

/// A producer that nobody else has.
struct Own(Arc<EventProducer>);

impl Drop for Own {
    fn drop(&mut self) {
        Arc::clone(&self.0).put_away();
    }
}

/// Why nobody knows what became of events.
#[derive(Debug, Clone, thiserror::Error)]
enum ProducerTrouble {
    #[error("no broker can be reached: {0}")]
    Down(String),
    #[error("the brokers did not confirm in time")]
    Silent,
    #[error("another call gave up on the brokers")]
    GivenUp,
    #[error("another sink has the same transactional id; every one needs its own")]
    Fenced(#[source] KafkaError),
    #[error("the producer failed")]
    Failed(#[source] KafkaError),
}

/// Why there is no sink to Kafka.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKafka {
    /// A setting that order and safety rest on, or that has a place of its own.
    #[error("`{name}` cannot be set here")]
    Ours {
        /// Which one.
        name: String,
    },
    /// librdkafka does not know a setting, or not this value.
    #[error("librdkafka refused its settings")]
    Settings(#[source] KafkaError),
}
