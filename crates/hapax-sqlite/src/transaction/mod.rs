//! The record in the caller's own transaction, beside the caller's own writes.
//!
//! Both drivers do the same: take the write lock (`BEGIN IMMEDIATE`), look at the row, let the
//! machine decide, run the caller's work behind a savepoint, write the row as finished and commit.
//! The lock is held throughout, so nothing has to be written before the end, and nobody ever sees
//! the record while its attempt runs. This module holds what does not depend on the driver.

pub(crate) mod once;

use std::time::Duration;

use hapax_core::{
    Attempt, Record, StoreError, Timestamp, apply,
    clock::ClockReading,
    codec::Row,
    decide,
    store::{By, Settle},
    transaction::{self, End, Entrance, TransactionAnswer},
};

use crate::row::NumberedRow;

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

/// Whoever held the write lock for too long may be done by then; nobody knows who it was.
pub(crate) const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Behind it are the caller's writes, which may be taken back while the record is kept.
pub(crate) const SAVEPOINT: &str = "SAVEPOINT hapax_work";
/// Takes the caller's writes back.
pub(crate) const UNDO: &str = "ROLLBACK TO hapax_work";
/// Keeps what is left of them; fails if the caller ended the transaction by hand.
pub(crate) const RELEASE: &str = "RELEASE hapax_work";

/// Changes the file, if only a little. A commit whose sync failed may lie in the log, where a
/// recovery after a crash would find it; whatever is committed next is written over it. After
/// this, what is read is what happened.
pub(crate) const MAKE_CERTAIN: &str = "INSERT INTO hapax_meta (name, value) VALUES ('unconfirmed', 1) \
     ON CONFLICT (name) DO UPDATE SET value = value + 1";

/// An operation that is claimed in an open transaction, though nothing is written yet.
#[derive(Debug)]
pub(crate) struct OpenClaim {
    /// The row to write in place of; `None` where there is none yet.
    pub(crate) number: Option<i64>,
    record: Record,
}

/// Whether it matters how far the clock is trusted: what was found seems to be past its time.
pub(crate) fn is_due(now: Timestamp, found: Option<&NumberedRow>) -> bool {
    let now = now.as_micros();
    let is_over = |until| until != 0 && until <= now;
    found.is_some_and(|NumberedRow { row, .. }| row.expires_at <= now || is_over(row.until))
}

/// Lets the machine decide about what was found, at the door of a transaction. The error is the
/// row's: it is neither answered from nor written over.
///
/// What is found is judged as far as the clock is trusted; what is written is written as of now.
pub(crate) fn enter(
    clock: ClockReading,
    entrance: &Entrance,
    found: Option<NumberedRow>,
) -> Result<Result<OpenClaim, TransactionAnswer>, StoreError> {
    let (now, trusted) = (clock.now, clock.trusted());
    let (number, found) = match found {
        Some(NumberedRow { number, row }) => (Some(number), Some(row.open(now)?)),
        None => (None, None),
    };
    let decision = decide(trusted, &entrance.arrival(), found.as_ref(), &entrance.policy);
    Ok(transaction::enter(trusted, decision, found.as_ref()).and_then(|claim| {
        let claimed = apply::claim(now, found.as_ref(), &claim);
        let record = claimed.ok_or(TransactionAnswer::Busy { retry_after: BUSY_RETRY_AFTER })?;
        Ok(OpenClaim { number, record })
    }))
}

impl OpenClaim {
    pub(crate) fn attempt(&self) -> Attempt {
        let record = &self.record;
        Attempt { id: record.operation.id(), fence: record.fence, owner: record.owner }
    }

    pub(crate) fn expires_at(&self) -> Timestamp {
        self.record.expires_at
    }

    /// The row to be written once the work has ended.
    pub(crate) fn ended(&self, now: Timestamp, end: &End) -> Result<Row, StoreError> {
        let Attempt { id, fence, owner } = self.attempt();
        let by = By::Owner { fence, owner };
        let settle = Settle { id, by, to: end.to.clone(), keep: end.keep };
        let ended = apply::settle(now, Some(&self.record), &settle);
        let ended = ended.ok_or_else(|| StoreError::unavailable(NotItsOwn))?;
        Ok(Row::seal(&ended))
    }
}

/// The machine does not let the owner of a claim end it.
#[derive(Debug, thiserror::Error)]
#[error("a claim cannot be ended by its own owner")]
struct NotItsOwn;

/// The row of a claim appeared or vanished although the write lock was held.
#[derive(Debug, thiserror::Error)]
#[error("the row of a claim changed inside its own transaction: leave the tables of Hapax alone")]
pub(crate) struct Meddled;

/// The caller ended the transaction that was not the caller's to end.
#[derive(Debug, thiserror::Error)]
#[error("the transaction was ended by hand: leave COMMIT and ROLLBACK to Hapax")]
pub(crate) struct EndedByHand<E: std::error::Error + 'static>(#[source] pub(crate) E);
