//! The stored response.

use bytes::Bytes;

use crate::limits::{
    OUTCOME_BODY_BYTES_MAX, OUTCOME_HEADER_BYTES_MAX, OUTCOME_HEADERS_MAX, OUTCOME_SEALED_BYTES_MAX,
};

/// What an operation answered, kept to be answered again.
///
/// Its status is a code of whoever made it: the machine stores it and gives it back, and decides
/// nothing by it. A caller without codes keeps a serialised value ([`Outcome::value`]). Cloning is
/// cheap.
///
/// ```
/// use hapax_core::{Body, Outcome};
///
/// let outcome = Outcome::value("{\"receipt\":7}".into())?;
/// assert_eq!(outcome.body(), &Body::Kept("{\"receipt\":7}".into()));
/// # Ok::<(), hapax_core::InvalidOutcome>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    status: u16,
    headers: Vec<Header>,
    body: Body,
}

/// One stored header: a name and the bytes of its value, in their original order.
///
/// ```
/// use hapax_core::{Body, Header, Outcome};
///
/// let kind = Header { name: "content-type".to_owned(), value: "text/plain".into() };
/// let outcome = Outcome::new(0, vec![kind], Body::Kept("paid".into()))?;
/// assert_eq!(outcome.headers().len(), 1);
/// # Ok::<(), hapax_core::InvalidOutcome>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name, as the front end spells it.
    pub name: String,
    /// The value, byte for byte.
    pub value: Bytes,
}

/// The status of an outcome that is a value: no code of any front.
const VALUE: u16 = 0;
/// The status of what nobody came for. No front is there to give it one; stored rows and those who
/// read them by SQL know this one.
const NEVER_RUN: u16 = 504;

/// The stored body.
///
/// ```
/// use hapax_core::{Body, Outcome};
///
/// fn text(outcome: &Outcome) -> String {
///     match outcome.body() {
///         Body::Kept(bytes) => String::from_utf8_lossy(bytes).into_owned(),
///         Body::NotKept { len } => format!("done; its {len} bytes were too many to keep"),
///         _ => "kept in another form".to_owned(),
///     }
/// }
/// # assert!(text(&Outcome::value_not_kept(9)).starts_with("done"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// The whole body.
    Kept(Bytes),
    /// It was not kept: too large, unwanted, or erased with the keys of its tenant. A replay can tell
    /// that the operation was done, not what it said.
    NotKept {
        /// How many bytes it had.
        len: u64,
    },
    /// It and the headers are encrypted: whoever stands around the store has the key. Whoever meets
    /// this has none, and cannot replay it.
    Sealed {
        /// How many bytes the body has.
        len: u64,
        /// Headers and body, as ciphertext.
        bytes: Bytes,
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
            Body::Sealed { bytes, .. } if bytes.len() > OUTCOME_SEALED_BYTES_MAX => {
                Err(InvalidOutcome::BodyTooLarge { len: bytes.len() })
            }
            Body::Kept(_) | Body::NotKept { .. } | Body::Sealed { .. } => {
                Ok(Self { status, headers, body })
            }
        }
    }

    /// A serialised value, for a caller that has neither codes nor headers.
    pub fn value(bytes: Bytes) -> Result<Self, InvalidOutcome> {
        Self::new(VALUE, Vec::new(), Body::Kept(bytes))
    }

    /// A serialised value of so many bytes, which is too large to keep.
    pub fn value_not_kept(len: u64) -> Self {
        Self { status: VALUE, headers: Vec::new(), body: Body::NotKept { len } }
    }

    /// The bytes given to [`Outcome::value`]; `None` if it is the answer of a front.
    pub fn as_value(&self) -> Option<&Bytes> {
        match (self.status, &self.body) {
            (VALUE, Body::Kept(bytes)) => Some(bytes),
            (_, Body::Kept(_) | Body::NotKept { .. } | Body::Sealed { .. }) => None,
        }
    }

    /// What an operation comes to that was accepted and never picked up.
    pub fn never_run() -> Self {
        Self::bare(NEVER_RUN)
    }

    /// A status and nothing else.
    pub fn bare(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Kept(Bytes::new()) }
    }

    /// The status, or [whatever its front calls so](Self).
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
            Body::Kept(bytes) | Body::Sealed { bytes, .. } => bytes.len(),
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
