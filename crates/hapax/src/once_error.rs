//! Why a call of `once` has no result, as what to do about it.

use std::{error::Error, time::Duration};

use hapax_core::{Difference, InvalidName, InvalidOutcome, InvalidPolicy, OperationId, Timestamp};
use hapax_engine::{BeginError, SettleError};

/// Why [`once`](crate::Hapax::once) has no result, as what to do about it.
///
/// Only [`OnceError::InDoubt`] and [`OnceError::NotRecorded`] leave open whether the effect happened.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hapax::{Hapax, OnceError};
///
/// let hapax = Hapax::open("memory:").await?;
/// let charge = || async { Err::<u32, _>(std::io::Error::other("the answer was lost")) };
/// let told = match hapax.once(("payments", "order-17"), &100, charge).await {
///     Ok(receipt) => format!("receipt {receipt}"),
///     Err(OnceError::Busy { retry_after }) => format!("ask again in {retry_after:?}"),
///     Err(OnceError::InDoubt { id, .. }) => format!("somebody has to look at {id}"),
///     Err(nothing_to_do) => return Err(nothing_to_do.into()),
/// };
/// assert!(told.starts_with("somebody has to look at"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError {
    /// Nothing was sent: the key is free, and the next call runs.
    #[error("nothing was sent; the key is free")]
    NotSent(#[source] Box<dyn Error + Send + Sync>),
    /// It failed for good: everybody who asks again hears the same.
    #[error("it failed for good: {message}")]
    Failed {
        /// What the first caller was told.
        message: String,
        /// The error itself, for the caller whose work it was.
        #[source]
        cause: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Nobody knows whether it happened. It is not run again by itself, unless its recovery says so:
    /// look it up with `hapax keys`, and resolve it.
    #[error("nobody knows whether it happened; operation {id} is in doubt")]
    InDoubt {
        /// Under which id it is listed.
        id: OperationId,
        /// The error of the work, for the caller whose work it was.
        #[source]
        cause: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Somebody else is at work on it: ask again later.
    #[error("somebody else is at work on it; ask again in {retry_after:?}")]
    Busy {
        /// When it is worth asking again.
        retry_after: Duration,
    },
    /// The key was used for another request: nothing was run.
    #[error("the key was used for another request")]
    OtherRequest(Difference),
    /// The key was used, and its result is past retention: nothing was run.
    #[error("the key was used, and its result is past retention")]
    Gone {
        /// When the result expired.
        since: Timestamp,
    },
    /// It was done, and its result was not kept: it was too large, or was erased.
    #[error("it was done; its result of {len} bytes was not kept")]
    NotKept {
        /// How many bytes it had.
        len: u64,
    },
    /// It was run, and how it ended could not be stored: ask again with the same key.
    #[error("it was run, and how it ended could not be stored")]
    NotRecorded(#[from] SettleError),
    /// The store could not be asked: nothing was run.
    #[error("the store could not be asked; nothing was run")]
    Store(#[from] BeginError),
    /// Tenant, scope or key cannot be used: nothing was run.
    #[error("the operation cannot be named so")]
    Name(#[from] InvalidName),
    /// What is said of the call contradicts itself: nothing was run.
    #[error("the call contradicts itself")]
    Policy(#[from] InvalidPolicy),
    /// The request cannot be written as JSON: nothing was run.
    #[error("the request cannot be written as JSON")]
    Request(#[source] serde_json::Error),
    /// The result cannot be written as JSON, or what is stored is not of this type.
    #[error("the result cannot be read or written as JSON of its type")]
    Result(#[source] serde_json::Error),
    /// The result cannot be kept.
    #[error("the result cannot be kept")]
    TooLarge(#[source] InvalidOutcome),
}
