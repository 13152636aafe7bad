//! What a user's handler is given, and what it answers.

use std::{
    error::Error,
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};

/// Why a handler did not act on a message.
///
/// Any error becomes [`Retry`](Self::Retry) with `?`, so only what is known to fail for good has to be
/// said in words.
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
pub struct Tx<T> {
    lent: Option<T>,
    home: Home<T>,
}

type Home<T> = Arc<Mutex<Option<T>>>;

#[expect(clippy::expect_used, reason = "only dropping takes the transaction out")]
impl<T> Deref for Tx<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.lent.as_ref().expect("a transaction is lent until it is dropped")
    }
}

#[expect(clippy::expect_used, reason = "only dropping takes the transaction out")]
impl<T> DerefMut for Tx<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.lent.as_mut().expect("a transaction is lent until it is dropped")
    }
}

impl<T> Drop for Tx<T> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.lent.take();
    }
}

impl<T> fmt::Debug for Tx<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}

/// Where a lent transaction comes back to.
pub(super) struct Lender<T>(Home<T>);

/// Lends a transaction.
pub(super) fn lend<T>(transaction: T) -> (Tx<T>, Lender<T>) {
    let home = Home::default();
    (Tx { lent: Some(transaction), home: Arc::clone(&home) }, Lender(home))
}

impl<T> Lender<T> {
    /// The transaction, if it has come back.
    pub(super) fn take(self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
