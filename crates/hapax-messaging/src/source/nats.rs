//! NATS JetStream: a durable consumer that pulls.

use std::{fmt, time::Duration};

use async_nats::{
    ConnectOptions, HeaderMap,
    jetstream::{
        self, AckKind,
        consumer::{AckPolicy, Consumer, pull},
        context::{ConsumerInfoErrorKind, ContextBuilder},
        message::Acker,
        stream::Stream,
    },
};
use futures_util::StreamExt;
use hapax_core::{Header, inbox::Partition};
use percent_encoding::percent_decode_str;
use tokio::time::sleep;

use crate::consumer::{Arrived, Delivery, Disposition, Incoming, Receipt, Source, SourceError};

/// How long to wait before messages are asked for again where that failed.
const PAUSE: Duration = Duration::from_millis(250);
const HEARTBEAT: Duration = Duration::from_secs(5);
const EXPIRES: Duration = Duration::from_secs(30);

/// Messages of a stream, to a durable consumer of it that all who open it share.
///
/// A message that is [done](Disposition::Done) is acknowledged, and the server confirms that. One for
/// [later](Disposition::Later) is put back with its delay. Order is kept by streams and not by their
/// consumers: a message that was put back comes after others.
///
/// ```no_run
/// use hapax_messaging::source::nats::{Nats, NatsOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = NatsOptions::new("ORDERS", "mailer");
/// let source = Nats::open("nats://127.0.0.1:4222", &options).await?;
/// # drop(source);
/// # Ok(())
/// # }
/// ```
pub struct Nats {
    consumer: Consumer<pull::Config>,
    messages: Option<pull::Stream>,
    at_once: usize,
    max_age: Option<Duration>,
}

/// Which messages, and how they are asked for.
///
/// ```
/// use hapax_messaging::source::nats::NatsOptions;
///
/// let subject = Some("orders.placed".to_owned());
/// let options = NatsOptions { subject, ..NatsOptions::new("ORDERS", "mailer") };
/// assert_eq!(options.at_once, 32);
/// ```
#[derive(Debug, Clone)]
pub struct NatsOptions {
    /// The stream they are in.
    pub stream: String,
    /// The consumer's name, shared by all who divide the messages among themselves. It is made if it
    /// is not there.
    pub durable: String,
    /// Which subject, or many by wildcards; all of the stream's if there is none. That of a consumer
    /// that is there already is left as it is.
    pub subject: Option<String>,
    /// How long the server waits for a word about a message before it delivers it again.
    pub ack_wait: Duration,
    /// How many messages are fetched at once.
    pub at_once: usize,
}

impl NatsOptions {
    /// All messages of a stream, for a consumer of this name: fetched 32 at once, each with 30
    /// seconds until there has to be a word about it.
    pub fn new(stream: impl Into<String>, durable: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            durable: durable.into(),
            subject: None,
            ack_wait: Duration::from_secs(30),
            at_once: 32,
        }
    }
}

impl Nats {
    /// Opens a consumer on the server with this URL.
    ///
    /// One that is there already is used as it is, unless it gives up on messages: then some would be
    /// lost without anybody having seen why.
    pub async fn open(url: &str, options: &NatsOptions) -> Result<Self, SourceError> {
        Self::open_by(url, ConnectOptions::new().name("hapax"), options).await
    }

    /// The same, connected by options of your own: credentials and certificates.
    pub async fn open_by(
        url: &str,
        connect: ConnectOptions,
        options: &NatsOptions,
    ) -> Result<Self, SourceError> {
        let servers: Vec<_> = url.split(',').map(str::trim).collect();
        let client = connect.ping_interval(HEARTBEAT).connect(servers).await;
        let client = client.map_err(|error| SourceError::new("connect", error))?;
        let context = ContextBuilder::new().timeout(HEARTBEAT).build(client);
        let stream = context.get_stream(&options.stream).await;
        let stream = stream.map_err(|error| SourceError::new("find the stream", error))?;
        let consumer = consumer(&stream, options).await?;
        let max_age = Some(stream.cached_info().config.max_age).filter(|age| !age.is_zero());
        Ok(Self { consumer, messages: None, at_once: options.at_once, max_age })
    }
}

async fn consumer(
    stream: &Stream,
    options: &NatsOptions,
) -> Result<Consumer<pull::Config>, SourceError> {
    let config = pull::Config {
        durable_name: Some(options.durable.clone()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: options.ack_wait,
        filter_subject: options.subject.clone().unwrap_or_default(),
        ..pull::Config::default()
    };
    let found = stream.get_or_create_consumer(&options.durable, config).await;
    let found = found.map_err(|error| SourceError::new("open the consumer", error))?;
    let config = &found.cached_info().config;
    if config.ack_policy != AckPolicy::Explicit {
        return Err(SourceError::new("use the consumer", "it wants no word about each message"));
    }
    if config.max_deliver > 0 {
        let gives_up = format!("it gives up on a message after {} deliveries", config.max_deliver);
        return Err(SourceError::new("use the consumer", gives_up));
    }
    Ok(found)
}

impl Source for Nats {
    type Receipt = NatsReceipt;

    async fn next(&mut self) -> Result<Arrived<NatsReceipt>, SourceError> {
        loop {
            let Some(messages) = &mut self.messages else {
                let asked = self.consumer.stream().max_messages_per_batch(self.at_once);
                let asked = asked.heartbeat(HEARTBEAT).expires(EXPIRES).messages().await;
                match asked {
                    Ok(messages) => self.messages = Some(messages),
                    Err(error) => self.rest(error.to_string()).await?,
                }
                continue;
            };
            match messages.next().await {
                Some(Ok(message)) => {
                    let ack_wait = self.consumer.cached_info().config.ack_wait;
                    return Ok(Arrived::Message(delivery(message, ack_wait)));
                }
                Some(Err(error)) => {
                    self.messages = None;
                    self.rest(error.to_string()).await?;
                }
                None => self.messages = None,
            }
        }
    }

    async fn start(&mut self, _: &Partition, _: Option<i64>) -> Result<(), SourceError> {
        Ok(())
    }

    async fn release(&mut self, _: &[Partition]) -> Result<(), SourceError> {
        Ok(())
    }

    /// As long as the stream keeps messages.
    fn longest_redelivery(&self) -> Option<Duration> {
        self.max_age
    }
}

impl Nats {
    /// Waits a little, and looks whether the consumer is still there: without it nothing more comes.
    async fn rest(&self, error: String) -> Result<(), SourceError> {
        tracing::warn!(%error, "no messages come from NATS; asking again");
        sleep(PAUSE).await;
        match self.consumer.get_info().await {
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {
                Err(SourceError::new("find the consumer again", error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("consumer", &self.consumer.cached_info().name).finish()
    }
}

/// What a message of JetStream is settled by.
pub struct NatsReceipt {
    acker: Acker,
    ack_wait: Duration,
}

impl fmt::Debug for NatsReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsReceipt").field("ack_wait", &self.ack_wait).finish_non_exhaustive()
    }
}

impl Receipt for NatsReceipt {
    async fn working(&self) -> Result<Option<Duration>, SourceError> {
        let told = self.acker.ack_with(AckKind::Progress).await;
        told.map_err(|error| SourceError::new("go on with a message", error))?;
        Ok(Some(self.ack_wait))
    }

    async fn settle(self, disposition: Disposition) -> Result<(), SourceError> {
        let kind = match disposition {
            Disposition::Done => AckKind::Ack,
            Disposition::Later(delay) => AckKind::Nak(Some(delay)),
        };
        let settled = self.acker.double_ack_with(kind).await;
        settled.map_err(|error| SourceError::new("settle a message", error))
    }
}

fn delivery(message: jetstream::Message, ack_wait: Duration) -> Delivery<NatsReceipt> {
    let (broker_id, deliveries) = match message.info() {
        Ok(info) => {
            let id = format!("{}:{}", info.stream, info.stream_sequence);
            (Some(id), u32::try_from(info.delivered).ok())
        }
        Err(_) => (None, None),
    };
    let (message, acker) = message.split();
    let headers = message.headers.as_ref().map(headers).unwrap_or_default();
    let mut incoming = Incoming {
        source: message.subject.to_string(),
        broker_id,
        key: None,
        payload: message.payload,
        headers,
        deliveries,
        place: None,
    };
    incoming.key = incoming.header("ce-subject").map(str::to_owned);
    Delivery { incoming, receipt: NatsReceipt { acker, ack_wait } }
}

/// In order of their names, because NATS keeps none; attributes of CloudEvents are decoded.
fn headers(map: &HeaderMap) -> Vec<Header> {
    let mut headers = Vec::with_capacity(map.len());
    for (name, values) in map.iter() {
        let name = name.to_string();
        for value in values {
            let value = match name.starts_with("ce-") {
                true => percent_decode_str(value.as_str()).collect::<Vec<_>>(),
                false => value.as_str().as_bytes().to_vec(),
            };
            headers.push(Header { name: name.clone(), value: value.into() });
        }
    }
    headers.sort_by(|a, b| a.name.cmp(&b.name));
    headers
}
