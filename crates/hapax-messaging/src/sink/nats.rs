//! NATS JetStream.

use std::{
    error::Error as _,
    fmt,
    str::{FromStr, from_utf8},
    time::Duration,
};

use async_nats::{
    ConnectOptions, HeaderMap, HeaderName, HeaderValue,
    connection::State,
    jetstream::{
        self, Context, ErrorCode,
        context::{ContextBuilder, GetStreamByNameErrorKind, PublishError, PublishErrorKind},
        message::PublishMessage,
    },
};
use hapax_core::outbox::Stored;
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout},
};

use super::{
    CloudEvents, Outage, Sink, Verdict,
    cloudevent::{own_headers, percent_encoded},
    in_chains,
};

/// How many events are on their way at the same time, in each call.
const AT_ONCE: usize = 512;

/// What the server reads as orders to itself; the type of the payload is told by us.
const RESERVED: [&str; 2] = ["content-type", "nats-"];

/// Publishes to JetStream, and waits until it has stored each event.
///
/// The subject is the topic, behind a prefix if there is one. `Nats-Msg-Id` is the event's id, so a
/// stream drops what it has seen within its `duplicate_window`.
///
/// Whether what a stream acknowledges survives a loss of power is the server's to say: with
/// `sync_interval: always`, or with three replicas.
///
/// ```no_run
/// use hapax_messaging::sink::Nats;
///
/// let sink = Nats::to("nats://127.0.0.1:4222").prefix("shop.");
/// # drop(sink);
/// ```
pub struct Nats {
    url: String,
    options: ConnectOptions,
    events: CloudEvents,
    prefix: String,
    within: Duration,
    context: OnceCell<Context>,
}

impl Nats {
    /// To the server with this URL, or several, separated by commas. User and password, or a token,
    /// may be part of it.
    pub fn to(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            options: ConnectOptions::new().name("hapax"),
            events: CloudEvents::default(),
            prefix: String::new(),
            within: Duration::from_secs(10),
            context: OnceCell::new(),
        }
    }

    /// The same, connected by options of your own: credentials and certificates.
    #[must_use]
    pub fn connect_by(self, options: ConnectOptions) -> Self {
        Self { options, ..self }
    }

    /// The same with events that say where they come from.
    #[must_use]
    pub fn events(self, events: CloudEvents) -> Self {
        Self { events, ..self }
    }

    /// The same with subjects that begin with this, a dot included if there shall be one.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// The same with another time an answer may take until it is an outage; 10 seconds if nothing is
    /// said. A call ends within twice that.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    async fn context(&self) -> Result<&Context, Outage> {
        let connect = async {
            let options = self.options.clone().ping_interval(self.within);
            let options = options.connection_timeout(self.within);
            let servers: Vec<_> = self.url.split(',').map(str::trim).collect();
            let client = options.connect(servers).await.map_err(Outage::new)?;
            Ok(ContextBuilder::new().timeout(self.within).build(client))
        };
        let connected =
            timeout(self.within, self.context.get_or_try_init(|| Box::pin(connect))).await;
        let context = connected.map_err(Outage::new)??;
        // Without this, what is published would wait in this process for a connection.
        match context.client().connection_state() {
            State::Connected => Ok(context),
            State::Pending | State::Disconnected => Err(Outage::new("there is no connection")),
        }
    }

    async fn publish(&self, context: &Context, event: &Stored) -> Result<Verdict, Outage> {
        let subject = format!("{}{}", self.prefix, event.topic);
        if !is_subject(&subject) {
            return Ok(Verdict::Refused(format!("`{subject}` is not a subject")));
        }
        let Some(headers) = self.headers(event) else {
            return Ok(Verdict::Refused("a header of it cannot be written".to_owned()));
        };
        let message = PublishMessage::build().headers(headers).payload(event.payload.clone());
        let sent = async { context.send_publish(subject.clone(), message).await?.await };
        match sent.await {
            Ok(_) => Ok(Verdict::Taken),
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                Err(unheard(context, &subject).await)
            }
            Err(error) => judge(error),
        }
    }

    /// `None` if one of the event's own cannot be written.
    fn headers(&self, event: &Stored) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", event.id.to_string());
        for (attribute, value) in self.events.attributes(event) {
            let value = HeaderValue::from_str(&percent_encoded(&value)).ok()?;
            headers.insert(attribute.hyphened(), value);
        }
        headers.insert("content-type", HeaderValue::from_str(&event.content_type).ok()?);
        for (name, value) in own_headers(event, &RESERVED) {
            let value = HeaderValue::from_str(from_utf8(value).ok()?).ok()?;
            headers.append(HeaderName::from_str(name).ok()?, value);
        }
        Some(headers)
    }
}

impl Sink for Nats {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let context = self.context().await?;
        let deadline = Instant::now() + self.within;
        in_chains(events, AT_ONCE, |event| async move {
            if Instant::now() > deadline {
                return Ok(Verdict::Missed("there was no time left for it".to_owned()));
            }
            self.publish(context, event).await
        })
        .await
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("Nats").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// Nobody took it. That is no fault of the event, whatever the reason: a stream that is not there yet
/// is made by somebody, and one without a leader finds another.
async fn unheard(context: &Context, subject: &str) -> Outage {
    match context.stream_by_subject(subject).await {
        Ok(stream) => Outage::new(format!("the stream `{stream}` does not answer")),
        Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => {
            Outage::new(format!("no stream takes the subject `{subject}`; add one that does"))
        }
        Err(error) => Outage::new(error),
    }
}

fn judge(error: PublishError) -> Result<Verdict, Outage> {
    let said = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
    match (error.kind(), said) {
        (PublishErrorKind::MaxPayloadExceeded, _) => Ok(Verdict::Refused(told(&error))),
        (_, Some(said)) => match said.error_code() {
            ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM
            | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => Ok(Verdict::Refused(told(&error))),
            // It is full, or somewhere there is no room.
            ErrorCode::STREAM_STORE_FAILED
            | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
            | ErrorCode::STORAGE_RESOURCES_EXCEEDED
            | ErrorCode::MEMORY_RESOURCES_EXCEEDED => Err(Outage::new(error)),
            ErrorCode::STREAM_SEALED => Err(Outage::until_resumed(error)),
            _ if said.code() >= 500 => Err(Outage::new(error)),
            _ => Ok(Verdict::Missed(told(&error))),
        },
        (_, None) => Err(Outage::new(error)),
    }
}

fn told(error: &PublishError) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Words separated by single dots, without spaces and wildcards.
fn is_subject(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && !matches!(word, "*" | ">")
            && !word.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    text.split('.').all(is_word)
}
