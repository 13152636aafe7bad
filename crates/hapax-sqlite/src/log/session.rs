//! What both drivers can say to the log.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use hapax_core::{OneLine, StoreError};
use rusqlite::{Connection, ffi};

use crate::inbox::{
    cell::{Cell, Cells},
    database::query,
};

/// A connection: a statement goes in, rows come out.
pub(crate) trait LogSession {
    /// Why a statement failed.
    type Error;

    /// Runs one statement.
    fn ask(
        &mut self,
        text: &'static str,
        values: &[Cell],
    ) -> impl Future<Output = Result<Vec<Cells>, Self::Error>>;

    /// What it means that the tables hold something that was never written.
    fn refuse(error: StoreError) -> Self::Error;
}

impl LogSession for &Connection {
    type Error = rusqlite::Error;

    async fn ask(&mut self, text: &'static str, values: &[Cell]) -> rusqlite::Result<Vec<Cells>> {
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
