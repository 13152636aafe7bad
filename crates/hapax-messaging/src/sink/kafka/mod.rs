//! Kafka, by an idempotent producer: what is sent twice by the network is appended once, and nothing
//! of a key overtakes anything before it.
//!
//! - `line`: a producer, until it fails;
//! - `round`: events handed to a producer together, and what it says of each;
//! - `transaction`: the same, all or none of it visible;
//! - `ledger`: what is known of each event of a call.

mod ledger;
mod line;
mod round;
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
    ledger::{Ledger, Rest},
    line::Line,
    round::Round,
};
use crate::sink::{CloudEvents, Outage, Sink, Verdict};

/// Appends events to topics of Kafka. A key always goes to the same partition, the one that Java's
/// clients would choose.
///
/// An event is taken once all replicas that are in sync have it. A topic that is not there is made,
/// if the brokers allow it. The record's headers are the attributes of a CloudEvent (`ce_id` and so
/// on), `content-type`, and the event's own.
#[derive(Debug)]
pub struct Kafka {
    config: ClientConfig,
    options: KafkaOptions,
    line: Mutex<Option<Arc<Line>>>,
    /// A producer has one transaction at a time.
    turn: tokio::sync::Mutex<()>,
}

/// How [`Kafka`] sends.
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
        let line = Line::open(&config).map_err(InvalidKafka::Settings)?;
        let (line, turn) = (Mutex::new(Some(line)), tokio::sync::Mutex::new(()));
        Ok(Self { config, options, line, turn })
    }

    /// The line to send by: a new one, if the last one failed.
    fn line(&self) -> Result<Arc<Line>, Trouble> {
        let mut slot = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = slot.as_ref().filter(|line| !line.is_spent()) {
            return Ok(Arc::clone(line));
        }
        let line = Line::open(&self.config).map_err(Trouble::Failed)?;
        if let Some(spent) = slot.replace(Arc::clone(&line)) {
            spent.put_away();
        }
        Ok(line)
    }

    /// Hands over everything at once. Only where brokers refuse some of it, one after the other.
    async fn send_at_once(&self, events: &[Stored], end: Instant) -> Result<Vec<Verdict>, Outage> {
        let mut ledger = Ledger::of(events);
        for last in [false, false, true] {
            let open = ledger.open();
            let line = self.line().map_err(Outage::new)?;
            let fates = self.round(&line, &ledger, &open, end).carry().await;
            match ledger.enter(&open, fates, false) {
                Rest::Known => break,
                Rest::Suspects => return self.send_one_by_one(ledger, end).await,
                // Another call's event was refused, and took the line with it.
                Rest::Lost(Trouble::Failed(_)) if !last => {}
                Rest::Lost(trouble) => return Err(Outage::new(trouble)),
            }
        }
        Ok(ledger.close())
    }

    /// Finds out which events brokers refuse: by a line of its own, which survives that, each event
    /// after the one before it was taken or refused.
    async fn send_one_by_one(
        &self,
        mut ledger: Ledger<'_>,
        end: Instant,
    ) -> Result<Vec<Verdict>, Outage> {
        let mut config = self.config.clone();
        config.set("enable.gapless.guarantee", "false").set("linger.ms", "0");
        let line = Own(Line::open(&config).map_err(|error| Outage::new(Trouble::Failed(error)))?);
        while let Some(next) = ledger.open().first().copied() {
            if Instant::now() >= end {
                break;
            }
            let fates = self.round(&line.0, &ledger, &[next], end).carry().await;
            if let Rest::Lost(trouble) = ledger.enter(&[next], fates, true) {
                return Err(Outage::new(trouble));
            }
        }
        Ok(ledger.close())
    }

    /// Sends everything as one transaction. Only where brokers refuse some of it, as more and more
    /// of them, until each that is refused is alone.
    async fn send_together(&self, events: &[Stored], end: Instant) -> Result<Vec<Verdict>, Outage> {
        let mut ledger = Ledger::of(events);
        let mut groups = vec![(0..events.len()).collect::<HashSet<_>>()];
        while let Some(group) = groups.pop() {
            let open: Vec<_> = ledger.open().into_iter().filter(|at| group.contains(at)).collect();
            if open.is_empty() {
                continue;
            }
            if Instant::now() >= end {
                break;
            }
            let line = self.line().map_err(Outage::new)?;
            let round = self.round(&line, &ledger, &open, end);
            let fates = transaction::carry(&line, round).await.map_err(Outage::new)?;
            match ledger.enter(&open, fates, open.len() == 1) {
                // Those that were sent along with a refused one, if there was one.
                Rest::Known => groups.push(group),
                Rest::Suspects => {
                    let (first, second) = open.split_at(open.len() / 2);
                    groups.extend([second, first].map(|half| half.iter().copied().collect()));
                }
                Rest::Lost(trouble) => return Err(Outage::new(trouble)),
            }
        }
        Ok(ledger.close())
    }

    fn round<'a>(
        &'a self,
        line: &'a Line,
        ledger: &Ledger<'a>,
        open: &'a [usize],
        end: Instant,
    ) -> Round<'a> {
        Round { line, options: &self.options, events: ledger.events, open, end }
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
            Err(_) => Err(Outage::new(Trouble::Silent)),
        }
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        let line = self.line.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(line) = line {
            line.put_away();
        }
    }
}

/// A line that nobody else has.
struct Own(Arc<Line>);

impl Drop for Own {
    fn drop(&mut self) {
        Arc::clone(&self.0).put_away();
    }
}

/// Why nobody knows what became of events.
#[derive(Debug, Clone, thiserror::Error)]
enum Trouble {
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
