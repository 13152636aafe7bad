//! What was delivered.

use std::fmt;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{
    headers::{are_sealed, unreadable_because, unreadable_headers},
    place::Place,
};
use crate::{operation::Key, outcome::Header};

/// A message, as a handler sees it: the same at every delivery.
///
/// ```
/// use hapax_core::inbox::Message;
///
/// /// What a handler reads of a message.
/// fn describe(message: &Message) -> String {
///     let trace = message.header("traceparent").unwrap_or("none");
///     format!("{} of {}, trace {trace}", message.id.as_str(), message.source)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name. Two deliveries with the same one are the same message.
    pub id: Key,
    /// Where the name comes from.
    pub identity: Identity,
    /// The topic, subject or queue it came from.
    pub source: String,
    /// What its order is kept for, if anything.
    pub key: Option<String>,
    /// Which version of its key's story it tells, if it says so.
    pub version: Option<i64>,
    /// What it says.
    pub payload: Bytes,
    /// Its headers, in their order.
    pub headers: Vec<Header>,
    /// Where it stands in an ordered log, if it comes from one.
    pub place: Option<Place>,
}

impl Message {
    /// The digest of what it says, by which a name that was used twice is found out.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.payload)
    }

    /// Whether a database gave it, and its payload is ciphertext of headers and payload.
    pub fn is_sealed(&self) -> bool {
        are_sealed(&self.headers)
    }

    /// The same, which is encrypted and which nobody can ever decrypt.
    #[must_use]
    pub fn unreadable(self, why: String) -> Self {
        Self { headers: unreadable_headers(why), ..self }
    }

    /// Why nobody can ever decrypt it, if a database gave it and that is so.
    pub fn unreadable_because(&self) -> Option<&str> {
        unreadable_because(&self.headers)
    }

    /// The first value of this header as text, if there is one. Names are compared without case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let header = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(&header.value).ok()
    }
}

/// Where the name of a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// From whoever sent it: the same however often it is sent.
    Business,
    /// From the broker: the same however often it is delivered, and another if it is sent again.
    Broker,
}

/// The digest of a message's payload: sixteen bytes.
///
/// SHA-256, cut to 128 bits, so that SQL can compute it too.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 16]);

impl Digest {
    /// The digest of this payload.
    pub fn of(payload: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&Sha256::digest(payload)[..16]);
        Self(bytes)
    }

    /// The digest with these bytes, as a database kept them.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The digest that is written as these hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 16];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        let digit = |digit: u8| char::from(digit).to_digit(16);
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }

    /// The bytes a database keeps.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
