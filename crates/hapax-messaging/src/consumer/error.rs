//! Why a consumer does not run.

use std::time::Duration;

use hapax_core::StoreError;

use super::source::SourceError;

/// Why a consumer does not run, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A message could be delivered again after it was forgotten, and would be acted on twice.
    #[error(
        "the retention is {retention:?}, and the broker may deliver a message again for {redelivery:?}: \
         remember messages for at least that long"
    )]
    RetentionTooShort {
        /// For how long what became of a message would be remembered.
        retention: Duration,
        /// How long after its first delivery a message may come again.
        redelivery: Duration,
    },
    /// Progress is to be kept by offset, and a message has none.
    #[error("progress is kept by offset, and a message from {from} has none: keep it by record")]
    NoOffset {
        /// Where the message came from.
        from: String,
    },
    /// The source cannot go on.
    #[error("the source cannot go on")]
    Source(#[source] SourceError),
    /// The database cannot be used.
    #[error("the consumer could not be made known to its database")]
    Store(#[source] StoreError),
}
