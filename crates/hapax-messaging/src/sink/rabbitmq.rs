//! RabbitMQ.

use std::{
    fmt,
    str::from_utf8,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hapax_core::outbox::Stored;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ErrorKind,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    protocol::{AMQPErrorKind, AMQPSoftError},
    types::{AMQPValue, FieldTable, LongString, ShortString},
};
use tokio::time::{Instant, timeout};

use super::{CloudEvents, Outage, Sink, Verdict, cloudevent::own_headers, in_chains};

/// How many events are on their way at the same time, in each call. Each has a channel of its own:
/// the broker says of a message that it was returned before it says which ones it confirms, so only
/// on a channel with one message under way it is certain which one was returned. What closes a
/// channel then is the fault of one event, too.
const AT_ONCE: usize = 64;

const PERSISTENT: u8 = 2;
const ROUTING_KEY_BYTES_MAX: usize = 255;

/// Publishes to an exchange, and waits until the broker has each event in a queue.
///
/// The routing key is the topic. What no queue is bound for comes back, and is refused. The message
/// id is the event's id; the broker itself drops no duplicates.
///
/// ```no_run
/// use hapax_messaging::sink::RabbitMq;
///
/// let sink = RabbitMq::to("amqp://127.0.0.1:5672/%2f", "orders");
/// # drop(sink);
/// ```
pub struct RabbitMq {
    url: String,
    exchange: ShortString,
    events: CloudEvents,
    within: Duration,
    line: tokio::sync::Mutex<Option<Arc<PublisherConnection>>>,
}

impl RabbitMq {
    /// To an exchange of the broker with this URL. The exchange has to be there; the one called ``
    /// puts each event into the queue that is called like its topic.
    pub fn to(url: impl Into<String>, exchange: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            exchange: exchange.into().into(),
            events: CloudEvents::default(),
            within: Duration::from_secs(10),
            line: tokio::sync::Mutex::new(None),
        }
    }

    /// The same with events that say where they come from.
    #[must_use]
    pub fn events(self, events: CloudEvents) -> Self {
        Self { events, ..self }
    }

    /// The same with another time an answer may take until it is an outage; 10 seconds if nothing is
    /// said. A call ends within three times that.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    async fn line(&self) -> Result<Arc<PublisherConnection>, Outage> {
        let mut held = self.line.lock().await;
        if let Some(line) = held.as_ref().filter(|line| line.connection.status().connected()) {
            return Ok(Arc::clone(line));
        }
        *held = None;
        let name = ConnectionProperties::default().with_connection_name("hapax".into());
        let connection = Connection::connect(&self.url, name).await.map_err(|e| outage(&e))?;
        let line = Arc::new(PublisherConnection { connection, idle: Mutex::default() });
        *held = Some(Arc::clone(&line));
        Ok(line)
    }

    /// Forgets a connection on which nobody answered.
    async fn hang_up(&self, line: &Arc<PublisherConnection>) {
        let mut held = self.line.lock().await;
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, line)) {
            *held = None;
        }
    }

    async fn publish(&self, line: &PublisherConnection, event: &Stored) -> Result<Verdict, Outage> {
        if event.topic.len() > ROUTING_KEY_BYTES_MAX {
            return Ok(Verdict::Refused("its topic is too long for a routing key".to_owned()));
        }
        let Some(properties) = self.properties(event) else {
            return Ok(Verdict::Refused("a header of it cannot be written".to_owned()));
        };
        let channel = line.channel().await.map_err(|error| outage(&error))?;
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let (exchange, topic) = (self.exchange.clone(), event.topic.as_str().into());
        let sent = async {
            let sent = channel.basic_publish(exchange, topic, options, &event.payload, properties);
            sent.await?.await
        };
        let verdict = match sent.await {
            Ok(Confirmation::Ack(None)) => Verdict::Taken,
            Ok(Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned))) => {
                Verdict::Refused(format!("it came back: {}", returned.reply_text))
            }
            Ok(Confirmation::Nack(None)) => {
                Verdict::Missed("the broker did not keep it".to_owned())
            }
            Ok(Confirmation::NotRequested) => return Err(Outage::new("nothing is confirmed")),
            // This channel is closed now.
            Err(error) => {
                return refusal(&error).map(Verdict::Refused).ok_or_else(|| outage(&error));
            }
        };
        line.idle().push(channel);
        Ok(verdict)
    }

    /// `None` if a header cannot be written.
    fn properties(&self, event: &Stored) -> Option<BasicProperties> {
        let mut headers = FieldTable::default();
        let text = |value: &str| AMQPValue::LongString(LongString::from(value));
        for (name, value) in own_headers(event, &["content-type"]) {
            headers.insert(name.into(), text(from_utf8(value).ok()?));
        }
        for (attribute, value) in self.events.attributes(event) {
            headers.insert(attribute.hyphened().into(), text(&value));
        }
        let seconds = u64::try_from(event.at.as_micros() / 1_000_000).unwrap_or_default();
        let properties = BasicProperties::default()
            .with_message_id(event.id.to_string().into())
            .with_content_type(event.content_type.as_str().into())
            .with_delivery_mode(PERSISTENT)
            .with_timestamp(seconds)
            .with_headers(headers);
        Some(properties)
    }
}

impl Sink for RabbitMq {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let line = timeout(self.within, self.line()).await.map_err(Outage::new)??;
        let (deadline, called) = (Instant::now() + self.within, &line);
        let sent = in_chains(events, AT_ONCE, |event| async move {
            if Instant::now() > deadline {
                return Ok(Verdict::Missed("there was no time left for it".to_owned()));
            }
            let published = timeout(self.within, self.publish(called, event)).await;
            published.map_err(Outage::new)?
        })
        .await;
        if sent.is_err() {
            self.hang_up(&line).await;
        }
        sent
    }
}

impl fmt::Debug for RabbitMq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("RabbitMq").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}

/// A connection, and channels on it that nothing is under way on.
struct PublisherConnection {
    connection: Connection,
    idle: Mutex<Vec<Channel>>,
}

impl PublisherConnection {
    async fn channel(&self) -> lapin::Result<Channel> {
        let idle = self.idle().pop();
        if let Some(channel) = idle {
            return Ok(channel);
        }
        let channel = self.connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Channel>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why this event will not be taken, if its channel was closed for something it is.
fn refusal(error: &lapin::Error) -> Option<String> {
    let ErrorKind::ProtocolError(said) = error.kind() else { return None };
    let its_own = [AMQPSoftError::PRECONDITIONFAILED, AMQPSoftError::CONTENTTOOLARGE];
    let refused = its_own.iter().any(|kind| *said.kind() == AMQPErrorKind::Soft(kind.clone()));
    refused.then(|| said.get_message().to_string())
}

fn outage(error: &lapin::Error) -> Outage {
    let forbidden = matches!(
        error.kind(),
        ErrorKind::ProtocolError(said)
            if *said.kind() == AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED)
    );
    match forbidden {
        true => Outage::until_resumed(error.clone()),
        false => Outage::new(error.clone()),
    }
}
