//! What a destination's address stands for.

use hapax_core::outbox::Stored;
use tokio::io::Stdout;

use super::{Lines, Outage, Sink, SinkAddress, Verdict};
use crate::relay::RelayConfig;

/// Any sink this crate was built with, chosen by its address.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnySink {
    /// `stdout:`
    Lines(Lines<Stdout>),
    /// `https://…`
    #[cfg(feature = "webhook")]
    Webhook(Box<super::webhook::Webhook>),
    /// `kafka://…`
    #[cfg(feature = "kafka")]
    Kafka(Box<super::Kafka>),
    /// `nats://…`
    #[cfg(feature = "nats")]
    Nats(Box<super::Nats>),
    /// `amqp://…`
    #[cfg(feature = "rabbitmq")]
    RabbitMq(Box<super::RabbitMq>),
    /// `sqs+https://…`
    #[cfg(feature = "sqs")]
    Sqs(Box<super::Sqs>),
}

impl AnySink {
    /// The sink of this destination. Nothing is contacted yet.
    pub fn new(config: &RelayConfig) -> Result<Self, SinkError> {
        let name = || config.destination.name().to_owned();
        match &config.address {
            SinkAddress::Stdout => Ok(Self::Lines(Lines::stdout().events(config.events.clone()))),
            #[cfg(feature = "webhook")]
            SinkAddress::Webhook(address) => {
                use super::webhook::{Secret, Webhook, WebhookOptions};
                let secrets = config.secrets.iter().map(|secret| Secret::parse(secret));
                let secrets = secrets.collect::<Result<_, _>>();
                let secrets =
                    secrets.map_err(|source| SinkError::Secret { name: name(), source })?;
                let options =
                    WebhookOptions { events: config.events.clone(), ..WebhookOptions::default() };
                let webhook = Webhook::new(address, secrets, options);
                let webhook =
                    webhook.map_err(|source| SinkError::Webhook { name: name(), source })?;
                Ok(Self::Webhook(Box::new(webhook)))
            }
            #[cfg(not(feature = "webhook"))]
            SinkAddress::Webhook(_) => {
                Err(SinkError::NotBuilt { name: name(), feature: "webhook" })
            }
            #[cfg(feature = "kafka")]
            SinkAddress::Kafka(address) => {
                use super::{Kafka, KafkaOptions};
                let options = KafkaOptions {
                    events: config.events.clone(),
                    topic_prefix: config.prefix.clone(),
                    settings: address.settings().clone(),
                    ..KafkaOptions::default()
                };
                let kafka = Kafka::new(address.brokers(), options);
                let kafka = kafka.map_err(|source| SinkError::Kafka { name: name(), source })?;
                Ok(Self::Kafka(Box::new(kafka)))
            }
            #[cfg(not(feature = "kafka"))]
            SinkAddress::Kafka(_) => Err(SinkError::NotBuilt { name: name(), feature: "kafka" }),
            #[cfg(feature = "nats")]
            SinkAddress::Nats(url) => {
                let nats =
                    super::Nats::to(url).events(config.events.clone()).prefix(&config.prefix);
                Ok(Self::Nats(Box::new(nats)))
            }
            #[cfg(not(feature = "nats"))]
            SinkAddress::Nats(_) => Err(SinkError::NotBuilt { name: name(), feature: "nats" }),
            #[cfg(feature = "rabbitmq")]
            SinkAddress::RabbitMq(url) => {
                let rabbitmq =
                    super::RabbitMq::to(url, &config.exchange).events(config.events.clone());
                Ok(Self::RabbitMq(Box::new(rabbitmq)))
            }
            #[cfg(not(feature = "rabbitmq"))]
            SinkAddress::RabbitMq(_) => {
                Err(SinkError::NotBuilt { name: name(), feature: "rabbitmq" })
            }
            #[cfg(feature = "sqs")]
            SinkAddress::Sqs(url) => {
                use super::Sqs;
                use crate::sqs::{Queue, QueueOptions};
                let queue = Queue::new(url, QueueOptions::default()).and_then(Sqs::to);
                let sqs = queue.map_err(|source| SinkError::Queue { name: name(), source })?;
                Ok(Self::Sqs(Box::new(sqs.events(config.events.clone()))))
            }
            #[cfg(not(feature = "sqs"))]
            SinkAddress::Sqs(_) => Err(SinkError::NotBuilt { name: name(), feature: "sqs" }),
        }
    }
}

impl Sink for AnySink {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        match self {
            Self::Lines(sink) => sink.send(events).await,
            #[cfg(feature = "webhook")]
            Self::Webhook(sink) => sink.send(events).await,
            #[cfg(feature = "kafka")]
            Self::Kafka(sink) => sink.send(events).await,
            #[cfg(feature = "nats")]
            Self::Nats(sink) => sink.send(events).await,
            #[cfg(feature = "rabbitmq")]
            Self::RabbitMq(sink) => sink.send(events).await,
            #[cfg(feature = "sqs")]
            Self::Sqs(sink) => sink.send(events).await,
        }
    }
}

/// Why there is no sink for a destination, as what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// It needs a client that was left out.
    #[error(
        "{name}: this hapax was built without {feature}; install a packaged one, which has it, \
         or build it with `cargo build --release --features {feature}`"
    )]
    NotBuilt {
        /// Which destination.
        name: String,
        /// What to build it with.
        feature: &'static str,
    },
    /// What its events are signed with is no secret.
    #[cfg(feature = "webhook")]
    #[error("{name}: its secret cannot be used")]
    Secret {
        /// Which destination.
        name: String,
        /// Why.
        #[source]
        source: super::webhook::InvalidSecret,
    },
    /// The webhook cannot be called as it is set up.
    #[cfg(feature = "webhook")]
    #[error("{name}: the webhook cannot be used")]
    Webhook {
        /// Which destination.
        name: String,
        /// Why.
        #[source]
        source: super::webhook::InvalidWebhook,
    },
    /// The client of Kafka refuses what it is set up with.
    #[cfg(feature = "kafka")]
    #[error("{name}: Kafka cannot be used")]
    Kafka {
        /// Which destination.
        name: String,
        /// Why.
        #[source]
        source: super::InvalidKafka,
    },
    /// The queue cannot be used as it is set up.
    #[cfg(feature = "sqs")]
    #[error("{name}: the queue cannot be used")]
    Queue {
        /// Which destination.
        name: String,
        /// Why.
        #[source]
        source: crate::sqs::QueueError,
    },
}
