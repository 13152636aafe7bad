//! Kafka: a member of a consumer group.
//!
//! - `callbacks`: the threads that poll and commit;
//! - `mailbox`: where they meet those who ask and settle;
//! - `partition_state`: what is known of one partition.

mod callbacks;
mod mailbox;
mod partition_state;

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions, ResourceSpecifier},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    error::KafkaResult,
};

use self::{
    callbacks::GroupCallbacks,
    mailbox::{GroupEvent, Mailbox, NextStep},
};
use crate::consumer::{
    Arrived, Delivery, Disposition, Incoming, Partition, Place, Receipt, Source, SourceError,
};

/// How long brokers may take to say how they keep a topic.
const ASK_PATIENCE: Duration = Duration::from_secs(10);
/// When a message comes again of which nobody said what became of it.
const DROPPED_PAUSE: Duration = Duration::from_secs(1);

/// Messages of topics, shared with all other members of a consumer group.
///
/// Offsets are committed up to the first message that is not [done](Disposition::Done), never by
/// time; whoever gets the partition next begins there. One for [later](Disposition::Later) is held
/// back here, and what is behind it in its partition with it. When partitions move to another member,
/// what is being worked on is finished and committed first, and partitions that stay are not
/// interrupted (cooperative rebalancing).
///
/// A partition that was started from an offset of the consumer's own is never committed.
///
/// ```no_run
/// use hapax_messaging::source::kafka::{Kafka, KafkaOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = KafkaOptions::new("broker-1:9092", "mailer", "orders.placed");
/// let source = Kafka::open(&options).await?;
/// # drop(source);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Kafka {
    mailbox: Arc<Mailbox>,
    retention: Option<Duration>,
}

/// Which messages, and as whom.
///
/// ```
/// use hapax_messaging::source::kafka::KafkaOptions;
///
/// let mut options = KafkaOptions::new("broker-1:9092", "mailer", "orders.placed");
/// options.topics.push("orders.cancelled".to_owned());
/// options.settings.insert("security.protocol".to_owned(), "ssl".to_owned());
/// ```
#[derive(Debug, Clone)]
pub struct KafkaOptions {
    /// The brokers: `host:port`, more of them after commas.
    pub brokers: String,
    /// The group, whose members share the partitions.
    pub group: String,
    /// The topics.
    pub topics: Vec<String>,
    /// Settings of librdkafka, as it calls them: `security.protocol`, `group.instance.id`,
    /// `auto.offset.reset` (`earliest` if nothing is said) and others.
    pub settings: BTreeMap<String, String>,
}

impl KafkaOptions {
    /// One topic, as a member of this group.
    pub fn new(
        brokers: impl Into<String>,
        group: impl Into<String>,
        topic: impl Into<String>,
    ) -> Self {
        Self {
            brokers: brokers.into(),
            group: group.into(),
            topics: vec![topic.into()],
            settings: BTreeMap::new(),
        }
    }

    fn config(&self) -> Result<ClientConfig, SourceError> {
        const OURS: [(&str, &str); 3] = [
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("partition.assignment.strategy", "cooperative-sticky"),
        ];
        let mut config = ClientConfig::new();
        config.set("auto.offset.reset", "earliest").set("queued.max.messages.kbytes", "16384");
        for (name, value) in &self.settings {
            if OURS.iter().any(|(ours, _)| ours == name) {
                return Err(SourceError::new("set it up", format!("`{name}` cannot be set here")));
            }
            config.set(name, value);
        }
        for (name, value) in OURS {
            config.set(name, value);
        }
        config.set("bootstrap.servers", &self.brokers).set("group.id", &self.group);
        Ok(config)
    }
}

impl Kafka {
    /// Joins a group, as soon as there is a broker.
    pub async fn open(options: &KafkaOptions) -> Result<Self, SourceError> {
        let config = options.config()?;
        let mailbox = Arc::new(Mailbox::default());
        let callbacks = GroupCallbacks { mailbox: Arc::clone(&mailbox) };
        let consumer: KafkaResult<BaseConsumer<GroupCallbacks>> =
            config.create_with_context(callbacks);
        let consumer = consumer.map_err(|error| SourceError::new("set it up", error))?;
        let topics: Vec<_> = options.topics.iter().map(String::as_str).collect();
        let subscribed = consumer.subscribe(&topics);
        subscribed.map_err(|error| SourceError::new("subscribe", error))?;
        let retention = retention(&config, &topics).await;
        let consumer = Arc::new(consumer);
        // One ring is enough: whoever hears it commits everything.
        let (bell, heard) = mpsc::sync_channel(1);
        mailbox.open(Arc::clone(&consumer), bell);
        let source = Self { mailbox: Arc::clone(&mailbox), retention };
        spawn("hapax-kafka-poll", move || callbacks::poll(consumer))?;
        spawn("hapax-kafka-commit", move || callbacks::commit(&mailbox, &heard))?;
        Ok(source)
    }
}

/// A thread that waits for brokers as long as it takes: a program can end without it.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), SourceError> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| SourceError::new("begin", error))
}

impl Drop for Kafka {
    fn drop(&mut self) {
        // The thread that polls has it too, leaves the group and is not waited for.
        drop(self.mailbox.close());
    }
}

impl Source for Kafka {
    type Receipt = KafkaReceipt;

    async fn next(&mut self) -> Result<Arrived<KafkaReceipt>, SourceError> {
        match self.mailbox.next().await {
            NextStep::Event(GroupEvent::Assigned(partitions)) => Ok(Arrived::Assigned(partitions)),
            NextStep::Event(GroupEvent::Revoked(partitions)) => Ok(Arrived::Revoked(partitions)),
            NextStep::Message(incoming, term) => {
                Ok(Arrived::Message(self.delivery(incoming, term)))
            }
            NextStep::Failure(error) => Err(SourceError::new("go on", error)),
        }
    }

    async fn start(&mut self, partition: &Partition, from: Option<i64>) -> Result<(), SourceError> {
        let started = self.mailbox.start(partition, from);
        started.map_err(|error| SourceError::new("begin with a partition", error))
    }

    async fn release(&mut self, partitions: &[Partition]) -> Result<(), SourceError> {
        let released = self.mailbox.release(partitions).await;
        released.map_err(|error| SourceError::new("let go of partitions", error))
    }

    /// As long as the topics are kept: a member that comes back after that long begins with what was
    /// not committed.
    fn longest_redelivery(&self) -> Option<Duration> {
        self.retention
    }
}

impl Kafka {
    fn delivery(&self, incoming: Incoming, term: u64) -> Delivery<KafkaReceipt> {
        let mailbox = Arc::clone(&self.mailbox);
        let receipt = KafkaReceipt { mailbox, place: incoming.place.clone(), term };
        Delivery { incoming, receipt }
    }
}

/// What a message of Kafka is settled by.
#[derive(Debug)]
pub struct KafkaReceipt {
    mailbox: Arc<Mailbox>,
    /// None once it is settled.
    place: Option<Place>,
    term: u64,
}

impl Receipt for KafkaReceipt {
    /// Kafka waits for as long as the consumer lives.
    async fn working(&self) -> Result<Option<Duration>, SourceError> {
        Ok(None)
    }

    /// Where every message before it is done as well, a message that is done is committed when this
    /// ends well; otherwise it is with the last of those.
    async fn settle(mut self, disposition: Disposition) -> Result<(), SourceError> {
        let Some(Place { partition, offset }) = self.place.take() else { return Ok(()) };
        match disposition {
            Disposition::Done => self.mailbox.done(&partition, offset, self.term).await,
            Disposition::Later(after) => {
                self.mailbox.put_back(&partition, offset, self.term, after);
                Ok(())
            }
        }
    }
}

impl Drop for KafkaReceipt {
    fn drop(&mut self) {
        if let Some(Place { partition, offset }) = self.place.take() {
            self.mailbox.put_back(&partition, offset, self.term, DROPPED_PAUSE);
        }
    }
}

/// The longest any of the topics is kept, where brokers say so and it is not for ever.
async fn retention(config: &ClientConfig, topics: &[&str]) -> Option<Duration> {
    let admin: AdminClient<DefaultClientContext> = config.create().ok()?;
    let asked: Vec<_> = topics.iter().map(|topic| ResourceSpecifier::Topic(topic)).collect();
    let options = AdminOptions::new().request_timeout(Some(ASK_PATIENCE));
    let answers = admin.describe_configs(&asked, &options).await.ok()?;
    let mut longest = Duration::ZERO;
    for answer in answers {
        let answer = answer.ok()?;
        let kept: i64 = answer.get("retention.ms")?.value.as_ref()?.parse().ok()?;
        longest = longest.max(Duration::from_millis(u64::try_from(kept).ok()?));
    }
    Some(longest)
}
