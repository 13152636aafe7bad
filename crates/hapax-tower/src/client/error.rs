//! Why a call ended without a response.

use hapax_core::retry::Conclusion;

use super::try_report::Tried;
use crate::{BoxError, signal::MalformedTime};

/// Why there is no response to hand on.
///
/// ```
/// use hapax_tower::client::RetryError;
///
/// fn advice(error: &RetryError) -> &'static str {
///     match error {
///         RetryError::GaveUp { .. } => "nothing happened; ask again later",
///         RetryError::Unknown { .. } => "ask again with the same key",
///         _ => "the request itself has to be mended",
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// The request cannot be sent as it is: nothing was sent, and asking again changes nothing.
    #[error("the request cannot be sent")]
    Invalid(#[source] InvalidRequest),
    /// No attempt can have had an effect: asking again is harmless.
    #[error("gave up after {} attempts without an effect: {}", tried.attempts, tried.stop)]
    GaveUp {
        /// What was tried.
        tried: Tried,
        /// What the last attempt failed with, if there was one.
        #[source]
        source: Option<BoxError>,
    },
    /// It may have happened: ask again with the same key, or find out otherwise.
    #[error("it may have happened: no answer in {} attempts, and {}", tried.attempts, tried.stop)]
    Unknown {
        /// What was tried.
        tried: Tried,
        /// What the last attempt failed with, if there was one.
        #[source]
        source: Option<BoxError>,
    },
}

impl RetryError {
    pub(super) fn after(tried: Tried, source: Option<BoxError>) -> Self {
        match tried.conclusion {
            Conclusion::Unknown | Conclusion::Done => Self::Unknown { tried, source },
            Conclusion::GaveUp | Conclusion::Refused => Self::GaveUp { tried, source },
        }
    }

    /// What was tried; `None` if the request could not be sent as it is.
    pub fn tried(&self) -> Option<&Tried> {
        match self {
            Self::Invalid(_) => None,
            Self::GaveUp { tried, .. } | Self::Unknown { tried, .. } => Some(tried),
        }
    }
}

/// Why a request cannot be sent as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// It could not be sent twice.
    #[error("its body is larger than the {bytes_max} bytes that are kept to send it again")]
    TooLarge {
        /// The largest body that is kept.
        bytes_max: usize,
    },
    /// Its body could not be read.
    #[error("its body could not be read")]
    Body(#[source] BoxError),
    /// It has an empty key, or more than one.
    #[error("its Idempotency-Key is empty, or there is more than one")]
    Key,
    /// The time its caller has left cannot be understood.
    #[error(transparent)]
    Time(#[from] MalformedTime),
}
