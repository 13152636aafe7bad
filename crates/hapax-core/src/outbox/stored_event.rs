//! What a log keeps of an event.

use std::fmt;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::sealed::SEALED_EVENT_TYPE;
use crate::{limits::OUTBOX_LANES, outcome::Header, time::Timestamp};

/// Where an event stands in its log: from 1, growing, never given twice.
pub type Position = i64;

/// An event as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Where it stands.
    pub position: Position,
    /// Which lane it goes by.
    pub lane: Lane,
    /// Its name, the same whenever it is sent.
    pub id: EventId,
    /// When it was written, by the store's clock.
    pub at: Timestamp,
    /// Where it is published: the `type` of a CloudEvent.
    pub topic: String,
    /// What its order is kept for: the `subject` of a CloudEvent.
    pub key: String,
    /// How its payload is to be read.
    pub content_type: String,
    /// Its headers, in order of their names; values are UTF-8.
    pub headers: Vec<Header>,
    /// What it says.
    pub payload: Bytes,
}

impl Stored {
    /// How many bytes it takes to keep it in memory, about.
    pub fn weight(&self) -> usize {
        let headers = self.headers.iter().map(|header| header.name.len() + header.value.len());
        let names = self.topic.len() + self.key.len() + self.content_type.len();
        self.payload.len() + names + headers.sum::<usize>()
    }

    /// Whether its payload is ciphertext.
    pub fn is_sealed(&self) -> bool {
        self.content_type == SEALED_EVENT_TYPE
    }
}

/// One of the [`OUTBOX_LANES`] an event can go by. All events of a topic and key go by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(u8);

impl Lane {
    /// The lane of a topic and key: the same in every backend and every version, because what was
    /// stored before an upgrade or a restore must stay in line with what comes after.
    pub fn of(topic: &str, key: &str) -> Self {
        let digest = Sha256::new().chain_update(topic).chain_update("\n").chain_update(key);
        Self(digest.finalize()[0] % OUTBOX_LANES)
    }

    /// The lane with this number, if there is one.
    pub fn from_number(number: i16) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| *number < OUTBOX_LANES).map(Self)
    }

    /// Its number, from 0.
    pub fn number(self) -> i16 {
        i16::from(self.0)
    }

    /// Its place in an array with one element for each lane.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Every lane, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..OUTBOX_LANES).map(Self)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of an event, unique for ever: what destinations deduplicate by.
///
/// ```
/// use hapax_core::outbox::EventId;
///
/// let id = EventId::parse("0198f3a2-5b1c-4d7e-8f00-112233445566");
/// assert!(id.is_some_and(|id| id.to_string() == "0198f3a2-5b1c-4d7e-8f00-112233445566"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId([u8; 16]);

impl EventId {
    /// The id of these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads the usual spelling of a UUID.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        let mut digits = text.bytes().filter(|byte| *byte != b'-');
        for byte in &mut bytes {
            let pair = [digits.next()?, digits.next()?];
            *byte = u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?;
        }
        let id = Self(bytes);
        (id.to_string().eq_ignore_ascii_case(text)).then_some(id)
    }
}

impl fmt::Display for EventId {
    /// As UUIDs are spelled.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if [4, 6, 8, 10].contains(&at) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
