//! What can be said to the log, by whoever has a connection.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use hapax_core::{OneLine, StoreError};
use hapax_sql::{ResultRow, Session, TransactionFault, Value};
use rusqlite::{Connection, ffi};

use crate::session::{CopiedRow, query};

/// A connection: a statement goes in, rows come out.
///
/// That is a [`Session`], but for its errors: those of the store's own connections stay `rusqlite`'s, because the
/// writer's thread tells from them whether a commit is known to be void.
pub(crate) trait LogSession {
    /// A row as the driver has it.
    type Row: ResultRow;
    /// Why a statement failed.
    type Error;

    /// Runs one statement.
    fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, Self::Error>>;

    /// What it means that the tables hold something that was never written.
    fn refuse(fault: TransactionFault) -> Self::Error;
}

/// In a caller's transaction, through whichever driver.
impl<S: Session> LogSession for &mut S {
    type Row = S::Row;
    type Error = TransactionFault;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<S::Row>, TransactionFault> {
        Session::ask(*self, text, values).await
    }

    fn refuse(fault: TransactionFault) -> TransactionFault {
        fault
    }
}

/// In the store's own threads.
impl LogSession for &Connection {
    type Row = CopiedRow;
    type Error = rusqlite::Error;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> rusqlite::Result<Vec<CopiedRow>> {
        query(self, text, values)
    }

    fn refuse(fault: TransactionFault) -> rusqlite::Error {
        let error = fault.of_read();
        let code = match &error {
            StoreError::Damaged(_) => ffi::SQLITE_CORRUPT,
            StoreError::Unavailable(_) | StoreError::Unconfirmed(_) | StoreError::TooNew(_) => {
                ffi::SQLITE_ERROR
            }
        };
        let words = OneLine::of(&error).to_string();
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(words))
    }
}

/// What a conversation over a connection of `rusqlite` came to: its answers are there at once.
pub(crate) fn ready<T>(conversation: impl Future<Output = T>) -> T {
    match pin!(conversation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        #[expect(clippy::panic, reason = "nothing in it ever waits")]
        Poll::Pending => panic!("a connection of rusqlite answers at once"),
    }
}
