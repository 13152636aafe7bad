//! What an operation was answered with.

use std::{fmt, time::Duration};

use bytes::Bytes;
use hapax_core::Key;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use crate::journal::JournalError;

/// What an operation was answered with, whole.
///
/// ```
/// use hapax_client::Answer;
///
/// fn log(answer: &Answer) {
///     let key = answer.key().unwrap_or("no key");
///     println!("{} under {key}, after {} attempts", answer.status(), answer.attempts());
///     for warning in answer.warnings() {
///         println!("{warning:?}");
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Result<Bytes, NotKept>,
    pub(crate) key: Option<Key>,
    pub(crate) attempts: u32,
    pub(crate) replayed: bool,
    pub(crate) recorded: bool,
    pub(crate) warnings: Vec<Warning>,
}

impl Answer {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body, or how large the one was that could not be kept.
    pub fn body(&self) -> Result<&Bytes, NotKept> {
        self.body.as_ref().map_err(|not_kept| *not_kept)
    }

    /// The body; empty if it could not be kept, which is among the [`warnings`](Self::warnings).
    pub fn bytes(&self) -> &[u8] {
        self.body().map_or(&[], |bytes| bytes)
    }

    /// The body as text; bytes that are none are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// The body, read as JSON.
    pub fn json<R: DeserializeOwned>(&self) -> Result<R, NotJson> {
        Ok(serde_json::from_slice(self.body()?)?)
    }

    /// The key it was sent with, if it had one.
    pub fn key(&self) -> Option<&str> {
        self.key.as_ref().map(Key::as_str)
    }

    /// How many attempts it took, those before a restart included; zero if it was never sent by
    /// this client.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether the server says that it is the stored answer to an earlier attempt.
    pub fn replayed(&self) -> bool {
        self.replayed
    }

    /// Whether it comes from the journal: nothing was sent this time.
    pub fn recorded(&self) -> bool {
        self.recorded
    }

    /// What should be known besides.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// What a caller should know about an operation that ended well all the same.
///
/// ```
/// use hapax_client::{Answer, Warning};
///
/// /// Whether a resume will ask again although there is an answer.
/// fn stays_pending(answer: &Answer) -> bool {
///     answer.warnings().iter().any(|warning| matches!(warning, Warning::NotRecorded(_)))
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Warning {
    /// The operation could be retried for longer than its server remembers the key. It is not: it
    /// ends as unknown when the server's window does.
    DeadlineBeyondWindow {
        /// The deadline of the operation.
        deadline: Duration,
        /// How long the server remembers a key.
        window: Duration,
    },
    /// The answer could not be written to the journal, where the operation is still pending. A
    /// resume will ask again with the same key.
    NotRecorded(JournalError),
    /// The body of the answer was too large to be kept.
    NotKept(NotKept),
}

/// The body of the answer was too large to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body of the answer, {len} bytes or more, was not kept; raise `response_bytes_max`")]
pub struct NotKept {
    /// How many bytes it had at least.
    pub len: u64,
}

/// Why an answer cannot be read as JSON.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotJson {
    /// There is nothing to read.
    #[error(transparent)]
    NotKept(#[from] NotKept),
    /// It is something else.
    #[error("the answer is not the JSON that was expected")]
    Json(#[from] serde_json::Error),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlineBeyondWindow { deadline, window } => write!(
                f,
                "the deadline of {deadline:?} is longer than the {window:?} for which the server \
                 remembers a key; it is not retried after that"
            ),
            Self::NotRecorded(error) => write!(
                f,
                "the answer is not in the journal ({error}); a resume asks again with the same key"
            ),
            Self::NotKept(not_kept) => not_kept.fmt(f),
        }
    }
}
