//! A transaction, lent.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};

use hapax_core::Attempt;

/// A transaction lent to the work of one operation, which it gives back when it is dropped.
///
/// It is the driver's own connection inside: write through it as ever. The claim is made, and the
/// commit is not the work's to make.
pub struct Tx<T> {
    lent: Option<T>,
    home: Home<T>,
    attempt: Attempt,
}

type Home<T> = Arc<Mutex<Option<T>>>;

impl<T> Tx<T> {
    /// The attempt this is: its fence and key may go downstream.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }
}

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
        f.debug_struct("Tx").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// Where a lent transaction comes back to.
pub(crate) struct Lender<T>(Home<T>);

/// Lends a transaction.
pub(crate) fn lend<T>(transaction: T, attempt: Attempt) -> (Tx<T>, Lender<T>) {
    let home = Home::default();
    let lender = Lender(Arc::clone(&home));
    (Tx { lent: Some(transaction), home, attempt }, lender)
}

impl<T> Lender<T> {
    /// The transaction, if it has come back.
    pub(crate) fn take(self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
