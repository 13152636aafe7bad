//! The record in the caller's own transaction, beside the caller's own writes.
//!
//! Both drivers do the same: take the write lock (`BEGIN IMMEDIATE`), enter, run the caller's work
//! behind a savepoint, leave and commit. The lock is held throughout, so nothing has to be written
//! before the end, and nobody ever sees the record while its attempt runs.
//!
//! The conversation is `hapax_sql::operation`'s. `log_record` is how a record is found, locked and written in
//! the log; `once` is the driver for `rusqlite`, and this module holds what does not depend on the driver.

mod log_record;
pub(crate) mod once;

use hapax_core::{
    StoreError, TransactionError,
    transaction::{Entrance, TransactionAnswer},
};
use hapax_sql::{Session, operation::unit};

pub use self::log_record::LogRecord;

/// The places of [`hapax_core::Faults`] an operation passes inside its caller's transaction, in
/// order.
pub const PLACES: &[&str] = &[
    place::BEFORE_BEGIN,
    place::AFTER_BEGIN,
    place::AFTER_WORK,
    place::BEFORE_COMMIT,
    place::AFTER_COMMIT,
];

/// Where an attempt may be made to fail.
pub(crate) mod place {
    pub(crate) const BEFORE_BEGIN: &str = "sqlite.transaction.before_begin";
    pub(crate) const AFTER_BEGIN: &str = "sqlite.transaction.after_begin";
    pub(crate) const AFTER_WORK: &str = "sqlite.transaction.after_work";
    pub(crate) const BEFORE_COMMIT: &str = "sqlite.transaction.before_commit";
    pub(crate) const AFTER_COMMIT: &str = "sqlite.transaction.after_commit";
}

/// Behind it are the caller's writes, which may be taken back while the record is kept.
pub(crate) const SAVEPOINT: &str = "SAVEPOINT hapax_work";
/// Takes the caller's writes back.
pub(crate) const UNDO: &str = "ROLLBACK TO hapax_work";
/// Keeps what is left of them; fails if the caller ended the transaction by hand.
pub(crate) const RELEASE: &str = "RELEASE hapax_work";

/// The answer to an operation that needs no transaction, if there is one. It waits for nobody's lock.
pub(crate) async fn answer_before(
    session: &mut impl Session,
    record: LogRecord,
    entrance: &Entrance,
) -> Result<Option<TransactionAnswer>, StoreError> {
    match unit::look_before(session, record, entrance).await {
        Ok(entered) => Ok(entered.err()),
        Err(TransactionError::Conflict(_) | TransactionError::Taken(_)) => Ok(None),
        Err(TransactionError::Store(error)) => Err(error),
    }
}

/// The caller ended the transaction that was not the caller's to end.
#[derive(Debug, thiserror::Error)]
#[error("the transaction was ended by hand: leave COMMIT and ROLLBACK to Hapax")]
pub(crate) struct EndedByHand<E: std::error::Error + 'static>(#[source] pub(crate) E);
