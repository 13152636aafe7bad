//! RabbitMQ: a queue, consumed with acknowledgements.

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use hapax_core::{Header, inbox::Partition};
use lapin::{
    Acker, BasicProperties, Connection, ConnectionProperties,
    options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions},
    types::{AMQPValue, FieldTable, ShortString},
};
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};

use crate::consumer::{Arrived, Delivery, Disposition, Incoming, Receipt, Source, SourceError};

/// How long to wait before connecting again where that failed.
const PAUSE: Duration = Duration::from_millis(250);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time a message is held back for later. The broker closes the channel of whoever holds a
/// message for half an hour.
const HOLD_MAX: Duration = Duration::from_secs(5 * 60);

/// Messages of a queue.
///
/// RabbitMQ puts a message back at once or not at all: one for [later](Disposition::Later) is held
/// back here, unacknowledged, until its time has come, five minutes at most. Should this process die
/// meanwhile, the broker delivers it at once.
///
/// A message that was put back comes after others. A quorum queue counts deliveries; with a
/// `delivery-limit` it gives up on messages, or hands them to its dead-letter exchange.
///
/// ```no_run
/// use hapax_messaging::source::rabbitmq::RabbitMq;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let source = RabbitMq::open("amqp://127.0.0.1:5672/%2f", "mailer", 32).await?;
/// # drop(source);
/// # Ok(())
/// # }
/// ```
pub struct RabbitMq {
    url: String,
    queue: String,
    at_once: u16,
    line: Option<ConsumerConnection>,
}

struct ConsumerConnection {
    /// Messages come for as long as it is there.
    _connection: Connection,
    messages: lapin::Consumer,
}

impl RabbitMq {
    /// Opens a queue of the broker with this URL; up to `at_once` of its messages are under way at
    /// the same time, those held back included.
    pub async fn open(url: &str, queue: &str, at_once: u16) -> Result<Self, SourceError> {
        let (url, queue) = (url.to_owned(), queue.to_owned());
        let mut source = Self { url, queue, at_once, line: None };
        source.line = Some(source.connect().await?);
        Ok(source)
    }

    async fn connect(&self) -> Result<ConsumerConnection, SourceError> {
        let connect = async {
            let name = ConnectionProperties::default().with_connection_name("hapax".into());
            let connection = Connection::connect(&self.url, name).await?;
            let channel = connection.create_channel().await?;
            channel.basic_qos(self.at_once, BasicQosOptions::default()).await?;
            let (queue, tag) = (self.queue.as_str().into(), ShortString::default());
            let (options, none) = (BasicConsumeOptions::default(), FieldTable::default());
            let messages = channel.basic_consume(queue, tag, options, none).await?;
            Ok::<_, lapin::Error>(ConsumerConnection { _connection: connection, messages })
        };
        let connected = timeout(CONNECT_TIMEOUT, connect).await;
        let connected = connected.map_err(|error| SourceError::new("connect", error))?;
        connected.map_err(|error| SourceError::new("open the queue", error))
    }
}

impl Source for RabbitMq {
    type Receipt = RabbitMqReceipt;

    async fn next(&mut self) -> Result<Arrived<RabbitMqReceipt>, SourceError> {
        loop {
            let Some(line) = &mut self.line else {
                match self.connect().await {
                    Ok(line) => self.line = Some(line),
                    Err(error) => {
                        let cause = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::warn!(?cause, "no messages come from RabbitMQ; connecting again");
                        sleep(PAUSE).await;
                    }
                }
                continue;
            };
            match line.messages.next().await {
                Some(Ok(message)) => return Ok(Arrived::Message(self.delivery(message))),
                Some(Err(error)) => {
                    tracing::warn!(%error, "the connection to RabbitMQ is lost; connecting again");
                    self.line = None;
                }
                None => self.line = None,
            }
        }
    }

    async fn start(&mut self, _: &Partition, _: Option<i64>) -> Result<(), SourceError> {
        Ok(())
    }

    async fn release(&mut self, _: &[Partition]) -> Result<(), SourceError> {
        Ok(())
    }

    fn longest_redelivery(&self) -> Option<Duration> {
        None
    }
}

impl RabbitMq {
    fn delivery(&self, message: lapin::message::Delivery) -> Delivery<RabbitMqReceipt> {
        let headers = headers(&message.properties);
        let mut incoming = Incoming {
            source: self.queue.clone(),
            broker_id: None,
            key: None,
            payload: Bytes::from(message.data),
            headers,
            deliveries: None,
            place: None,
        };
        incoming.key = incoming.header("ce-subject").map(str::to_owned);
        // Quorum queues count those that failed; others only know whether there was one.
        let failed = incoming.header("x-delivery-count").and_then(|count| count.parse().ok());
        incoming.deliveries = match (message.redelivered, failed) {
            (_, Some(failed)) => u32::checked_add(failed, 1),
            (false, None) => Some(1),
            (true, None) => None,
        };
        Delivery { incoming, receipt: RabbitMqReceipt { acker: Some(message.acker) } }
    }
}

impl fmt::Debug for RabbitMq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("RabbitMq").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// What a message of RabbitMQ is settled by. Dropped without a word, the message is put back.
#[derive(Debug)]
pub struct RabbitMqReceipt {
    /// `None` once it is settled.
    acker: Option<Acker>,
}

const BACK: BasicNackOptions = BasicNackOptions { multiple: false, requeue: true };

impl Receipt for RabbitMqReceipt {
    /// As long as the connection stands the broker waits, for half an hour if it is not told
    /// otherwise.
    async fn working(&self) -> Result<Option<Duration>, SourceError> {
        Ok(None)
    }

    async fn settle(mut self, disposition: Disposition) -> Result<(), SourceError> {
        let Some(acker) = self.acker.take() else { return Ok(()) };
        match disposition {
            Disposition::Done => {
                let settled = acker.ack(BasicAckOptions::default()).await;
                settled.map_err(|error| SourceError::new("settle a message", error))?;
            }
            Disposition::Later(delay) => {
                put_back(acker, delay.min(HOLD_MAX));
            }
        }
        Ok(())
    }
}

impl Drop for RabbitMqReceipt {
    fn drop(&mut self) {
        if let Some(acker) = self.acker.take() {
            put_back(acker, Duration::ZERO);
        }
    }
}

/// Without a runtime the connection is ending, too, and the broker puts back all there is.
fn put_back(acker: Acker, delay: Duration) {
    let Ok(runtime) = Handle::try_current() else { return };
    runtime.spawn(async move {
        sleep(delay).await;
        if let Err(error) = acker.nack(BACK).await {
            tracing::debug!(%error, "the connection ended first, so the broker puts it back");
        }
    });
}

/// The headers, and those properties whoever sent it has set.
fn headers(properties: &BasicProperties) -> Vec<Header> {
    let header =
        |name: &str, value: &str| Header { name: name.to_owned(), value: value.to_owned().into() };
    let mut headers = Vec::new();
    for (name, value) in properties.headers().iter().flat_map(FieldTable::inner) {
        let value: Bytes = match value {
            AMQPValue::LongString(text) => text.as_bytes().to_vec().into(),
            AMQPValue::ByteArray(bytes) => bytes.as_slice().to_vec().into(),
            AMQPValue::ShortString(text) => text.to_string().into(),
            AMQPValue::Boolean(value) => value.to_string().into(),
            AMQPValue::ShortShortInt(value) => value.to_string().into(),
            AMQPValue::ShortShortUInt(value) => value.to_string().into(),
            AMQPValue::ShortInt(value) => value.to_string().into(),
            AMQPValue::ShortUInt(value) => value.to_string().into(),
            AMQPValue::LongInt(value) => value.to_string().into(),
            AMQPValue::LongUInt(value) => value.to_string().into(),
            AMQPValue::LongLongInt(value) => value.to_string().into(),
            AMQPValue::Timestamp(value) => value.to_string().into(),
            AMQPValue::Float(value) => value.to_string().into(),
            AMQPValue::Double(value) => value.to_string().into(),
            // Lists and tables are the broker's own notes.
            AMQPValue::DecimalValue(_)
            | AMQPValue::FieldArray(_)
            | AMQPValue::FieldTable(_)
            | AMQPValue::Void => continue,
        };
        headers.push(Header { name: name.to_string(), value });
    }
    for (name, value) in [
        ("content-type", properties.content_type()),
        ("message_id", properties.message_id()),
        ("correlation_id", properties.correlation_id()),
        ("type", properties.kind()),
        ("app_id", properties.app_id()),
    ] {
        headers.extend(value.as_ref().map(|value| header(name, value.as_str())));
    }
    headers
}
