//! What a destination's address stands for.

use hapax_core::outbox::Stored;
use hapax_gateway::config::{RelayConfig, relays::Place};
use hapax_messaging::sink::{
    Lines, Outage, Sink, Verdict,
    webhook::{InvalidSecret, InvalidWebhook, Secret, Webhook, WebhookOptions},
};
use tokio::io::Stdout;

/// Any sink this program was built with.
#[derive(Debug)]
pub(crate) enum AnySink {
    Lines(Lines<Stdout>),
    Webhook(Box<Webhook>),
    #[cfg(feature = "kafka")]
    Kafka(Box<hapax_messaging::sink::Kafka>),
    #[cfg(feature = "nats")]
    Nats(Box<hapax_messaging::sink::Nats>),
    #[cfg(feature = "rabbitmq")]
    RabbitMq(Box<hapax_messaging::sink::RabbitMq>),
    #[cfg(feature = "sqs")]
    Sqs(Box<hapax_messaging::sink::Sqs>),
}

impl AnySink {
    /// The sink of this destination. Nothing is contacted yet.
    pub(crate) fn new(config: &RelayConfig) -> Result<Self, SinkError> {
        let name = || config.destination.name().to_owned();
        match &config.place {
            Place::Stdout => Ok(Self::Lines(Lines::stdout().events(config.events.clone()))),
            Place::Webhook(address) => {
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
            #[cfg(feature = "kafka")]
            Place::Kafka(brokers) => {
                use hapax_messaging::sink::{Kafka, KafkaOptions};
                let options = KafkaOptions {
                    events: config.events.clone(),
                    topic_prefix: config.prefix.clone(),
                    ..KafkaOptions::default()
                };
                let kafka = Kafka::new(brokers, options);
                let kafka = kafka.map_err(|source| SinkError::Kafka { name: name(), source })?;
                Ok(Self::Kafka(Box::new(kafka)))
            }
            #[cfg(not(feature = "kafka"))]
            Place::Kafka(_) => Err(SinkError::NotBuilt { name: name(), feature: "kafka" }),
            #[cfg(feature = "nats")]
            Place::Nats(url) => {
                let nats = hapax_messaging::sink::Nats::to(url)
                    .events(config.events.clone())
                    .prefix(&config.prefix);
                Ok(Self::Nats(Box::new(nats)))
            }
            #[cfg(not(feature = "nats"))]
            Place::Nats(_) => Err(SinkError::NotBuilt { name: name(), feature: "nats" }),
            #[cfg(feature = "rabbitmq")]
            Place::RabbitMq(url) => {
                let rabbitmq = hapax_messaging::sink::RabbitMq::to(url, &config.exchange)
                    .events(config.events.clone());
                Ok(Self::RabbitMq(Box::new(rabbitmq)))
            }
            #[cfg(not(feature = "rabbitmq"))]
            Place::RabbitMq(_) => Err(SinkError::NotBuilt { name: name(), feature: "rabbitmq" }),
            #[cfg(feature = "sqs")]
            Place::Sqs(url) => {
                use hapax_messaging::{
                    sink::Sqs,
                    sqs::{Queue, QueueOptions},
                };
                let queue = Queue::new(url, QueueOptions::default()).and_then(Sqs::to);
                let sqs = queue.map_err(|source| SinkError::Queue { name: name(), source })?;
                Ok(Self::Sqs(Box::new(sqs.events(config.events.clone()))))
            }
            #[cfg(not(feature = "sqs"))]
            Place::Sqs(_) => Err(SinkError::NotBuilt { name: name(), feature: "sqs" }),
        }
    }
}

impl Sink for AnySink {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        match self {
            Self::Lines(sink) => sink.send(events).await,
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
pub(crate) enum SinkError {
    #[cfg(not(all(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "sqs")))]
    #[error(
        "{name}: this hapax was built without {feature}; \
         build it with `cargo build --release --features {feature}`"
    )]
    NotBuilt { name: String, feature: &'static str },
    #[error("{name}: its secret cannot be used")]
    Secret {
        name: String,
        #[source]
        source: InvalidSecret,
    },
    #[error("{name}: the webhook cannot be used")]
    Webhook {
        name: String,
        #[source]
        source: InvalidWebhook,
    },
    #[cfg(feature = "kafka")]
    #[error("{name}: Kafka cannot be used")]
    Kafka {
        name: String,
        #[source]
        source: hapax_messaging::sink::InvalidKafka,
    },
    #[cfg(feature = "sqs")]
    #[error("{name}: the queue cannot be used")]
    Queue {
        name: String,
        #[source]
        source: hapax_messaging::sqs::QueueError,
    },
}
