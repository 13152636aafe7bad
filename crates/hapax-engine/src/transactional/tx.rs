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
/// commit is not the work's to make. `A` is what the work is told of its attempt.
///
/// ```
/// use hapax_core::Database;
/// use hapax_engine::Tx;
///
/// /// The number of the attempt, which may go downstream with the key.
/// fn attempt<D: Database>(tx: &Tx<D::Transaction>) -> i64 {
///     tx.attempt().fence.get()
/// }
/// ```
pub struct Tx<T, A = Attempt> {
    lent: Option<T>,
    home: Home<T>,
    attempt: A,
}

type Home<T> = Arc<Mutex<Option<T>>>;

impl<T> Tx<T> {
    /// The attempt this is: its fence and key may go downstream.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }
}

#[expect(clippy::expect_used, reason = "only dropping takes the transaction out")]
impl<T, A> Deref for Tx<T, A> {
    type Target = T;

    fn deref(&self) -> &T {
        self.lent.as_ref().expect("a transaction is lent until it is dropped")
    }
}

#[expect(clippy::expect_used, reason = "only dropping takes the transaction out")]
impl<T, A> DerefMut for Tx<T, A> {
    fn deref_mut(&mut self) -> &mut T {
        self.lent.as_mut().expect("a transaction is lent until it is dropped")
    }
}

impl<T, A> Drop for Tx<T, A> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.lent.take();
    }
}

impl<T, A: fmt::Debug> fmt::Debug for Tx<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// Where a lent transaction comes back to.
pub struct Lender<T>(Home<T>);

/// Lends a transaction; it is with its lender again when the work has dropped it.
pub fn lend<T, A>(transaction: T, attempt: A) -> (Tx<T, A>, Lender<T>) {
    let home = Home::default();
    let lender = Lender(Arc::clone(&home));
    (Tx { lent: Some(transaction), home, attempt }, lender)
}

impl<T> Lender<T> {
    /// The transaction, if it has come back.
    pub fn take(self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> fmt::Debug for Lender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lender").finish_non_exhaustive()
    }
}
