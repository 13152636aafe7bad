//! What both drivers can say to the log.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use hapax_core::{OneLine, StoreError};
use hapax_sql::{ResultRow, Value};
use rusqlite::{Connection, ffi};

use crate::inbox::session::{CopiedRow, query};

/// A connection: a statement goes in, rows come out. Unlike [`hapax_sql::Session`] it is not sent between threads,
/// and keeps its driver's own errors: the writer's thread tells from them whether a commit is known to be void.
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
    fn refuse(error: StoreError) -> Self::Error;
}

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

    fn refuse(error: StoreError) -> rusqlite::Error {
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
pub(crate) fn ready<T>(
    conversation: impl Future<Output = rusqlite::Result<T>>,
) -> rusqlite::Result<T> {
    match pin!(conversation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(rusqlite::Error::InvalidQuery),
    }
}
