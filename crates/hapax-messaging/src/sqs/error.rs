//! What can go wrong between us and a queue.

use std::error::Error;

use reqsign_core::ErrorKind;

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqsError {
    /// Nothing was sent: there are no credentials, and waiting does not help.
    #[error("there are no credentials")]
    NoCredentials(#[source] Box<dyn Error + Send + Sync>),
    /// Nothing was sent: who gives us credentials does not answer, or not now.
    #[error("credentials cannot be had now")]
    CredentialsAway(#[source] Box<dyn Error + Send + Sync>),
    /// Nobody answered, or not in time: what was asked for may have happened.
    #[error("the queue does not answer")]
    Unreachable(#[source] reqwest::Error),
    /// What was answered is not SQS.
    #[error("what the queue answered (status {status}) cannot be read")]
    Unreadable {
        /// The status of the answer.
        status: u16,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
    /// It was refused, and nothing happened.
    #[error("the queue refused it: {code}: {message}")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// The name Amazon gives the reason, without its namespace.
        code: String,
        /// The reason in words.
        message: String,
    },
}

/// What a refusal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing is wrong with what was asked: later it may work.
    NotNow,
    /// We are not let in.
    NotAllowed,
    /// What was asked for can never work.
    Never,
}

impl SqsError {
    pub(super) fn unsigned(cause: reqsign_core::Error) -> Self {
        let waiting_helps = cause.is_retryable() || cause.kind() == ErrorKind::Unexpected;
        if waiting_helps {
            Self::CredentialsAway(cause.into())
        } else {
            Self::NoCredentials(cause.into())
        }
    }

    pub(crate) fn meaning(&self) -> Meaning {
        match self {
            Self::CredentialsAway(_) | Self::Unreachable(_) | Self::Unreadable { .. } => {
                Meaning::NotNow
            }
            Self::NoCredentials(_) => Meaning::NotAllowed,
            Self::Refused { status, .. } if *status >= 500 || *status == 429 => Meaning::NotNow,
            Self::Refused { code, .. } if NOT_ALLOWED.iter().any(|name| code.contains(name)) => {
                Meaning::NotAllowed
            }
            Self::Refused { code, .. } if NOT_NOW.iter().any(|name| code.contains(name)) => {
                Meaning::NotNow
            }
            Self::Refused { .. } => Meaning::Never,
        }
    }
}

/// Credentials and rights. Parts of names: Amazon spells some of them in several ways.
const NOT_ALLOWED: [&str; 9] = [
    "AccessDenied",
    "AuthFailure",
    "ExpiredToken",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "MissingAuthenticationToken",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
    "KmsDisabled",
];

/// Too much at once, a queue that is not there yet or was just deleted, a clock that is off.
const NOT_NOW: [&str; 9] = [
    "Throttl",
    "OverLimit",
    "NonExistentQueue",
    "QueueDoesNotExist",
    "QueueDeletedRecently",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "SignatureException",
    "Kms",
];

/// Why a queue cannot be used as it was described.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The address is not one of a queue.
    #[error("`{url}` is not the URL of a queue: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME")]
    NoQueue {
        /// What was given.
        url: String,
    },
    /// Order per key is only kept by queues whose names end in `.fifo`.
    #[error("`{name}` keeps no order: only a queue whose name ends in `.fifo` does")]
    NoOrder {
        /// The queue's name.
        name: String,
    },
    /// The region is not known.
    #[error("the region is in neither the URL, the options nor AWS_REGION")]
    NoRegion,
    /// TLS cannot be used here.
    #[error("HTTPS cannot be used here")]
    Https(#[source] Box<dyn Error + Send + Sync>),
}
