//! How an event is written so that others can read it: CloudEvents 1.0.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hapax_core::outbox::Stored;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

/// Longest `source`, in bytes: what any header of any broker holds.
const SOURCE_BYTES_MAX: usize = 255;

/// What all events of a destination say about where they come from.
///
/// An event becomes a CloudEvent of the binary kind where the place has headers: the payload is the
/// body, byte for byte, and the attributes are headers beside the event's own. Elsewhere it becomes
/// a JSON object: [`Self::structured`].
///
/// ```
/// use hapax_messaging::sink::CloudEvents;
///
/// let events = CloudEvents::from_source("/shop/orders")?;
/// assert_ne!(events, CloudEvents::default());
/// assert!(CloudEvents::from_source("two words").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudEvents {
    source: String,
}

impl Default for CloudEvents {
    /// Events that come from `hapax`.
    fn default() -> Self {
        Self { source: "hapax".to_owned() }
    }
}

impl CloudEvents {
    /// Events that come from this `source`: a URI reference, `/shop/orders` for example.
    pub fn from_source(source: impl Into<String>) -> Result<Self, InvalidSource> {
        let source = source.into();
        let visible = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if source.is_empty() || source.len() > SOURCE_BYTES_MAX || !source.bytes().all(visible) {
            return Err(InvalidSource { given: source });
        }
        Ok(Self { source })
    }

    /// The attributes of an event, but for the type of its payload, which every place says in a way
    /// of its own.
    pub fn attributes<'a>(&'a self, event: &'a Stored) -> [(Attribute, Cow<'a, str>); 6] {
        [
            (Attribute::SpecVersion, Cow::Borrowed("1.0")),
            (Attribute::Id, Cow::Owned(event.id.to_string())),
            (Attribute::Source, Cow::Borrowed(&self.source)),
            (Attribute::Type, Cow::Borrowed(&event.topic)),
            (Attribute::Subject, Cow::Borrowed(&event.key)),
            (Attribute::Time, Cow::Owned(event.at.to_string())),
        ]
    }

    /// The event as one JSON object on one line, without its end.
    ///
    /// A payload that is JSON is the member `data` as it is, text is a string, anything else is
    /// `data_base64`. Headers are one attribute, `headers`: a JSON object written as a string,
    /// because CloudEvents nests nothing.
    pub fn structured(&self, event: &Stored) -> String {
        let written = serde_json::to_string(&Structured { events: self, event });
        // Nothing in it can fail to be written: all names are text, and no value nests.
        written.unwrap_or_default()
    }
}

/// An attribute that every event has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// The version of CloudEvents.
    SpecVersion,
    /// The event's id, the same whenever it is sent.
    Id,
    /// Where it comes from.
    Source,
    /// Its topic.
    Type,
    /// Its key.
    Subject,
    /// When it was written, by the store's clock.
    Time,
}

impl Attribute {
    /// As CloudEvents call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SpecVersion => "specversion",
            Self::Id => "id",
            Self::Source => "source",
            Self::Type => "type",
            Self::Subject => "subject",
            Self::Time => "time",
        }
    }

    /// As the header is called where names are written with hyphens: HTTP, NATS, RabbitMQ.
    pub fn hyphened(self) -> &'static str {
        match self {
            Self::SpecVersion => "ce-specversion",
            Self::Id => "ce-id",
            Self::Source => "ce-source",
            Self::Type => "ce-type",
            Self::Subject => "ce-subject",
            Self::Time => "ce-time",
        }
    }

    /// As the header is called in Kafka.
    pub fn underscored(self) -> &'static str {
        match self {
            Self::SpecVersion => "ce_specversion",
            Self::Id => "ce_id",
            Self::Source => "ce_source",
            Self::Type => "ce_type",
            Self::Subject => "ce_subject",
            Self::Time => "ce_time",
        }
    }
}

/// The event's own headers, without those that would pass for an attribute, and without the
/// `reserved`: in small letters; one that ends with `-` stands for all that begin with it.
pub fn own_headers<'a>(
    event: &'a Stored,
    reserved: &'a [&str],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let taken = move |name: &str| {
        let name = name.to_ascii_lowercase();
        let is = |word: &&str| name == **word || (word.ends_with('-') && name.starts_with(word));
        let attribute =
            name.starts_with("ce-") || name.starts_with("ce_") || name == "content-type";
        attribute || reserved.iter().any(is)
    };
    let headers = event.headers.iter().filter(move |header| !taken(&header.name));
    headers.map(|header| (header.name.as_str(), header.value.as_ref()))
}

/// Writes what is not visible ASCII, and `"` and `%`, as percent signs and digits: as CloudEvents
/// want it in headers that hold nothing else.
pub fn percent_encoded(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'%';
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        if plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(encoded)
}

struct Structured<'a> {
    events: &'a CloudEvents,
    event: &'a Stored,
}

impl Serialize for Structured<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (attribute, value) in self.events.attributes(self.event) {
            map.serialize_entry(attribute.name(), &value)?;
        }
        map.serialize_entry("datacontenttype", &self.event.content_type)?;
        let headers: serde_json::Map<String, serde_json::Value> = own_headers(self.event, &[])
            .map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into()))
            .collect();
        if !headers.is_empty() {
            map.serialize_entry("headers", &serde_json::Value::Object(headers).to_string())?;
        }
        match Data::of(self.event) {
            Data::None => {}
            Data::Json(json) => map.serialize_entry("data", &json)?,
            Data::Text(text) => map.serialize_entry("data", text)?,
            Data::Binary(bytes) => map.serialize_entry("data_base64", &STANDARD.encode(bytes))?,
        }
        map.end()
    }
}

/// How a payload is written in JSON.
enum Data<'a> {
    None,
    Json(Box<RawValue>),
    Text(&'a str),
    Binary(&'a [u8]),
}

impl<'a> Data<'a> {
    fn of(event: &'a Stored) -> Self {
        let bytes = event.payload.as_ref();
        if bytes.is_empty() {
            return Self::None;
        }
        let kind = event.content_type.split(';').next().unwrap_or_default().trim();
        let kind = kind.to_ascii_lowercase();
        if let Ok(text) = std::str::from_utf8(bytes) {
            if kind.ends_with("/json") || kind.ends_with("+json") {
                // Between the tokens a line end is a space, and inside of them there is none.
                let on_one_line = text.replace(['\n', '\r'], " ");
                if let Ok(json) = RawValue::from_string(on_one_line) {
                    return Self::Json(json);
                }
            } else if kind.starts_with("text/") {
                return Self::Text(text);
            }
        }
        Self::Binary(bytes)
    }
}

/// What was given is no `source` of events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a URI reference of 1 to {SOURCE_BYTES_MAX} visible ASCII characters")]
pub struct InvalidSource {
    given: String,
}
