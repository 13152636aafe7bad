//! What is to be published if, and only if, a transaction commits.

use bytes::Bytes;

use crate::{
    limits::{
        EVENT_HEADER_BYTES_MAX, EVENT_HEADERS_MAX, EVENT_NAME_BYTES_MAX, EVENT_PAYLOAD_BYTES_MAX,
    },
    outbox::sealed::SEALED_EVENT_TYPE,
    outcome::Header,
};

/// Something that happened, to be told to others in the order it was committed in for its key.
///
/// It becomes a CloudEvent: the topic is its `type`, the key its `subject`, the payload its `data`.
///
/// ```
/// use hapax_core::Event;
///
/// let event = Event::new("orders.placed", "order-17", r#"{"customer":"ada"}"#)?;
/// let event = event.header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-01")?;
/// assert_eq!((event.topic(), event.key()), ("orders.placed", "order-17"));
/// assert!(Event::new("", "order-17", "{}").is_err());
/// # Ok::<(), hapax_core::InvalidEvent>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    topic: String,
    key: String,
    payload: Bytes,
    content_type: String,
    headers: Vec<Header>,
}

impl Event {
    /// An event with a JSON payload and no headers.
    pub fn new(
        topic: impl Into<String>,
        key: impl Into<String>,
        payload: impl Into<Bytes>,
    ) -> Result<Self, InvalidEvent> {
        let event = Self {
            topic: topic.into(),
            key: key.into(),
            payload: payload.into(),
            content_type: "application/json".to_owned(),
            headers: Vec::new(),
        };
        for (field, text) in [("topic", &event.topic), ("key", &event.key)] {
            named(field, text)?;
        }
        if event.payload.len() > EVENT_PAYLOAD_BYTES_MAX {
            return Err(InvalidEvent::PayloadTooLarge { len: event.payload.len() });
        }
        Ok(event)
    }

    /// The same event with a payload of another type; not that of [encrypted](SEALED_EVENT_TYPE) events.
    pub fn content_type(self, content_type: impl Into<String>) -> Result<Self, InvalidEvent> {
        let content_type = content_type.into();
        named("content type", &content_type)?;
        if content_type == SEALED_EVENT_TYPE {
            return Err(InvalidEvent::SealedType);
        }
        Ok(Self { content_type, ..self })
    }

    /// The event with this ciphertext in place of its payload, content type and headers. Topic and key
    /// stay: events are found, and kept in order, by them.
    pub fn sealed(&self, ciphertext: Bytes) -> Result<Self, InvalidEvent> {
        let (content_type, headers) = (SEALED_EVENT_TYPE.to_owned(), Vec::new());
        let sealed = Self::new(&*self.topic, &*self.key, ciphertext)?;
        Ok(Self { content_type, headers, ..sealed })
    }

    /// Whether its payload is ciphertext.
    pub fn is_sealed(&self) -> bool {
        self.content_type == SEALED_EVENT_TYPE
    }

    /// The same event with one more header.
    pub fn header(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, InvalidEvent> {
        let (name, value) = (name.into(), value.into());
        named("header name", &name)?;
        if self.headers.len() >= EVENT_HEADERS_MAX {
            return Err(InvalidEvent::TooManyHeaders);
        }
        let bytes = |header: &Header| header.name.len() + header.value.len();
        let len = self.headers.iter().map(bytes).sum::<usize>() + name.len() + value.len();
        if len > EVENT_HEADER_BYTES_MAX {
            return Err(InvalidEvent::HeadersTooLarge { len });
        }
        self.headers.push(Header { name, value: value.into() });
        Ok(self)
    }

    /// Where it is published.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// What its order is kept for.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What it says.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// How its payload is to be read.
    pub fn payload_type(&self) -> &str {
        &self.content_type
    }

    /// Its headers, in order; values are UTF-8.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }
}

pub(super) fn named(field: &'static str, text: &str) -> Result<(), InvalidEvent> {
    match text.len() {
        0 => Err(InvalidEvent::Empty { field }),
        len if len > EVENT_NAME_BYTES_MAX => Err(InvalidEvent::TooLong { field, len }),
        _ if text.contains('\0') => Err(InvalidEvent::HasNul { field }),
        _ => Ok(()),
    }
}

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEvent {
    /// A name is empty.
    #[error("its {field} is empty")]
    Empty {
        /// Which one.
        field: &'static str,
    },
    /// A name is too long.
    #[error("its {field} is {len} bytes long; the limit is {EVENT_NAME_BYTES_MAX}")]
    TooLong {
        /// Which one.
        field: &'static str,
        /// Its length, in bytes.
        len: usize,
    },
    /// A name holds a zero byte, which no database keeps in text.
    #[error("its {field} holds a zero byte")]
    HasNul {
        /// Which one.
        field: &'static str,
    },
    /// Its content type says that it is encrypted, which it is not.
    #[error("the content type {SEALED_EVENT_TYPE} is kept for events that Hapax encrypted")]
    SealedType,
    /// The payload is too large.
    #[error("its payload is {len} bytes; the limit is {EVENT_PAYLOAD_BYTES_MAX}")]
    PayloadTooLarge {
        /// Its size, in bytes.
        len: usize,
    },
    /// There are too many headers.
    #[error("it has more than {EVENT_HEADERS_MAX} headers")]
    TooManyHeaders,
    /// The headers are too large.
    #[error("its headers are {len} bytes together; the limit is {EVENT_HEADER_BYTES_MAX}")]
    HeadersTooLarge {
        /// Their size, in bytes of names and values.
        len: usize,
    },
}
