//! What a user's handler is given, and what it answers.

use std::error::Error;

/// Why a handler did not act on a message.
///
/// Any error becomes [`Retry`](Self::Retry) with `?`, so only what is known to fail for good has to be
/// said in words.
///
/// ```
/// use hapax_messaging::consumer::HandlerError;
///
/// fn cents(payload: &str) -> Result<u32, HandlerError> {
///     let cents: u32 = payload.parse()?; // tried again
///     if cents == 0 {
///         return Err(HandlerError::failed("there is nothing to pay")); // never again
///     }
///     Ok(cents)
/// }
/// # assert!(matches!(cents("0"), Err(HandlerError::Failed(_))));
/// ```
#[derive(Debug)]
pub enum HandlerError {
    /// It may succeed another time: everything is rolled back, and the message comes again until its
    /// attempts are spent.
    Retry(Box<dyn Error + Send + Sync>),
    /// It will never succeed, for this reason: its writes are rolled back, the reason is kept, and the
    /// message is not run again.
    Failed(String),
}

impl HandlerError {
    /// It will never succeed, for this reason.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::Retry(error.into())
    }
}

/// A transaction lent to a handler, which it gives back when it is dropped.
///
/// It is the driver's own connection inside: write through it as ever, and `emit` what others should
/// hear of. The record of the message is in it already, and the commit is not the handler's to make.
pub type Tx<T> = hapax_engine::Tx<T, ()>;
