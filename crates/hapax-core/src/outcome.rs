//! The stored response.

use bytes::Bytes;

use crate::limits::{OUTCOME_BODY_BYTES_MAX, OUTCOME_HEADER_BYTES_MAX, OUTCOME_HEADERS_MAX};

/// What an operation answered, kept to be answered again.
///
/// The shape is HTTP's because most outcomes are; a job or a consumer uses the status as its own
/// code. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    status: u16,
    headers: Vec<Header>,
    body: Body,
}

/// One stored header: a name and the bytes of its value, in their original order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name, as the front end spells it.
    pub name: String,
    /// The value, byte for byte.
    pub value: Bytes,
}

/// The stored body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// The whole body.
    Kept(Bytes),
    /// It was too large to keep; a replay can tell that the operation was done, not what it said.
    NotKept {
        /// How many bytes it had.
        len: u64,
    },
}

impl Outcome {
    /// An outcome within the limits.
    pub fn new(status: u16, headers: Vec<Header>, body: Body) -> Result<Self, InvalidOutcome> {
        if headers.len() > OUTCOME_HEADERS_MAX {
            return Err(InvalidOutcome::TooManyHeaders { count: headers.len() });
        }
        let len = headers.iter().map(|header| header.name.len() + header.value.len()).sum();
        if len > OUTCOME_HEADER_BYTES_MAX {
            return Err(InvalidOutcome::HeadersTooLarge { len });
        }
        match &body {
            Body::Kept(bytes) if bytes.len() > OUTCOME_BODY_BYTES_MAX => {
                Err(InvalidOutcome::BodyTooLarge { len: bytes.len() })
            }
            Body::Kept(_) | Body::NotKept { .. } => Ok(Self { status, headers, body }),
        }
    }

    /// Whether it says when to come back.
    pub fn asks_to_wait(&self) -> bool {
        self.headers.iter().any(|header| header.name.eq_ignore_ascii_case("retry-after"))
    }

    /// A status and nothing else.
    pub fn bare(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Kept(Bytes::new()) }
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The stored headers, in their original order.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// The stored body.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Roughly how many bytes it holds in memory.
    pub fn weight(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|header| header.name.len() + header.value.len() + 56).sum();
        let body = match &self.body {
            Body::Kept(bytes) => bytes.len(),
            Body::NotKept { .. } => 0,
        };
        headers + body
    }
}

/// Why an outcome cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOutcome {
    /// More headers than the limit.
    #[error("it has {count} headers; the limit is {OUTCOME_HEADERS_MAX}")]
    TooManyHeaders {
        /// How many there are.
        count: usize,
    },
    /// The headers together are larger than the limit.
    #[error("its headers are {len} bytes; the limit is {OUTCOME_HEADER_BYTES_MAX}")]
    HeadersTooLarge {
        /// Their size in bytes.
        len: usize,
    },
    /// The body is larger than the limit.
    #[error("its body is {len} bytes; the limit is {OUTCOME_BODY_BYTES_MAX}")]
    BodyTooLarge {
        /// Its size in bytes.
        len: usize,
    },
}
