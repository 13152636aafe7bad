//! What becomes of an operation that was not done, and what to do about it.

use std::{error::Error, fmt, time::Duration};

use hapax_core::{Key, retry::Conclusion};
use hapax_tower::{BoxError, client::StopReason};
use http::{HeaderName, Method, StatusCode, Uri};

use crate::{
    answer::Answer,
    call::InvalidCall,
    journal::{JournalError, Name},
};

/// Why there is no success to return. Every variant is something else to do.
///
/// ```
/// use hapax_client::CallError;
///
/// fn advice(error: &CallError) -> &'static str {
///     match error {
///         CallError::Refused(_) => "the server said no; change the request",
///         CallError::Unknown(_) => "it may have happened; ask again with the same key",
///         CallError::WindowPassed(_) => "it may have happened; ask people",
///         CallError::GaveUp(_) => "it did not happen; send it again when you like",
///         _ => "nothing was sent",
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server said no: it did not happen. Change the request, or accept it.
    #[error("refused: {} was answered with {}", .0.key().unwrap_or("the request"), .0.status())]
    Refused(Box<Answer>),
    /// It may have happened. Ask again with the same key, which has no second effect.
    #[error("unknown: {0}")]
    Unknown(#[source] Box<Unfinished>),
    /// It did not happen: nothing was sent, or every answer said that nothing ran. It may be tried
    /// again at any time.
    #[error("gave up: {0}")]
    GaveUp(#[source] Box<Unfinished>),
    /// The name belongs to another request. Nothing was sent.
    #[error(
        "the name `{name}` belongs to another request in the journal; give this operation a name \
         of its own, or forget the other one"
    )]
    NameReused {
        /// The name.
        name: Name,
    },
    /// Somebody else pursues the operation. Nothing was sent.
    #[error(
        "the operation `{name}` is being pursued elsewhere, for {ends_in:?} if its owner is gone; \
         wait for it, or look it up in the journal"
    )]
    Held {
        /// The operation.
        name: Name,
        /// How soon it is free if its owner says nothing more.
        ends_in: Duration,
    },
    /// The server has forgotten the key by now, so that it was not sent again: whether the
    /// operation happened stays unknown.
    #[error("unknown: {0}")]
    WindowPassed(#[source] Box<WindowPassed>),
    /// The journal does not hold the headers that say who asks. Nothing was sent.
    #[error(
        "the operation `{name}` was begun with {}, and the journal does not keep it; give it to \
         the client's builder with `header`, or send the operation again",
        list(headers)
    )]
    CredentialsMissing {
        /// The operation.
        name: Name,
        /// What is missing.
        headers: Vec<HeaderName>,
    },
    /// The call cannot be sent as it was put together. Nothing was sent.
    #[error("the call cannot be sent")]
    Invalid(#[source] InvalidCall),
    /// The operation could not be written to the journal. Nothing was sent here; where nobody knows
    /// whether it was written, a resume may find it and send it.
    #[error("the operation could not be written to the journal, so nothing was sent")]
    Journal(#[from] JournalError),
}

impl CallError {
    /// What the operation came to; `None` if it was not even begun here.
    pub fn conclusion(&self) -> Option<Conclusion> {
        match self {
            Self::Refused(_) => Some(Conclusion::Refused),
            Self::Unknown(_) | Self::WindowPassed(_) => Some(Conclusion::Unknown),
            Self::GaveUp(_) => Some(Conclusion::GaveUp),
            Self::NameReused { .. }
            | Self::Held { .. }
            | Self::CredentialsMissing { .. }
            | Self::Invalid(_)
            | Self::Journal(_) => None,
        }
    }

    /// The last answer, if there was one.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Refused(answer) => Some(answer),
            Self::Unknown(unfinished) | Self::GaveUp(unfinished) => unfinished.answer.as_deref(),
            Self::NameReused { .. }
            | Self::Held { .. }
            | Self::WindowPassed(_)
            | Self::CredentialsMissing { .. }
            | Self::Invalid(_)
            | Self::Journal(_) => None,
        }
    }

    /// The key, where one was made or found.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Refused(answer) => answer.key(),
            Self::Unknown(unfinished) | Self::GaveUp(unfinished) => unfinished.key(),
            Self::WindowPassed(passed) => Some(passed.key.as_str()),
            Self::NameReused { .. }
            | Self::Held { .. }
            | Self::CredentialsMissing { .. }
            | Self::Invalid(_)
            | Self::Journal(_) => None,
        }
    }
}

/// An operation that ended without a conclusive answer, and everything needed to ask again.
#[derive(Debug)]
pub struct Unfinished {
    /// What the caller calls it, if it has a name.
    pub name: Option<Name>,
    /// The key it was sent with, if it had one.
    pub key: Option<Key>,
    /// The method.
    pub method: Method,
    /// Where it was sent.
    pub url: Uri,
    /// How many attempts were made, those before a restart included.
    pub attempts: u32,
    /// The last answer, if there was one.
    pub answer: Option<Box<Answer>>,
    /// Why it was left so.
    pub reason: BoxError,
}

impl Unfinished {
    /// The key it was sent with, if it had one.
    pub fn key(&self) -> Option<&str> {
        self.key.as_ref().map(Key::as_str)
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, url, attempts, .. } = self;
        write!(f, "{method} {} after {attempts} attempts", LoggedAddress(url))?;
        if let Some(key) = self.key() {
            write!(f, "; ask again with the key {key}")?;
        }
        if let Some(name) = &self.name {
            write!(f, ", by sending `{name}` again")?;
        }
        Ok(())
    }
}

impl Error for Unfinished {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.reason.as_ref())
    }
}

/// An operation that would be sent after its server has forgotten the key.
#[derive(Debug, thiserror::Error)]
#[error(
    "it was first sent {age:?} ago, and its server remembers a key for {window:?}: sent again, it \
     could happen twice. Find out at the other side, by the key {}, then forget it", key.as_str()
)]
pub struct WindowPassed {
    /// What the caller calls it, if it has a name.
    pub name: Option<Name>,
    /// Its key.
    pub key: Key,
    /// How long ago it was first sent.
    pub age: Duration,
    /// How long its server remembers a key.
    pub window: Duration,
}

/// The last answer of an operation, which did not end it.
#[derive(Debug, thiserror::Error)]
#[error("the last answer was {status}, and {stop}")]
pub(crate) struct LastAnswer {
    pub(crate) status: StatusCode,
    pub(crate) stop: StopReason,
}

/// An address without its query, which may hold what is not for logs.
pub(crate) struct LoggedAddress<'a>(pub(crate) &'a Uri);

impl fmt::Display for LoggedAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, authority) = (self.0.scheme_str(), self.0.authority());
        if let (Some(scheme), Some(authority)) = (scheme, authority) {
            write!(f, "{scheme}://{authority}")?;
        }
        f.write_str(self.0.path())
    }
}

fn list(headers: &[HeaderName]) -> String {
    headers.iter().map(HeaderName::as_str).collect::<Vec<_>>().join(", ")
}
