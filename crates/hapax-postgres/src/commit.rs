//! A batch as one statement: what it writes, it writes in one commit.
//!
//! Settles, renewals and takeovers are updates that name what they expect; first claims are
//! inserts that give way. What was not written is then read by a second statement, with a snapshot
//! of its own: in one statement, a claim that lost a race would find nothing at all.

use std::{collections::HashMap, time::Duration};

use hapax_core::{
    Attempt, Fence, OperationId, StoreError, Timestamp,
    codec::{self, Sealed},
    store::{Loaded, Settle, Write, Written},
};
use tokio_postgres::types::ToSql;

use crate::{
    batch::Parts,
    connection::SharedConnection,
    error::{StatementFailure, after, before},
    row::{self, Id, column},
    store::Shared,
};

/// Times a batch is sent again because others were in its way.
const ATTEMPTS_MAX: u32 = 4;
/// Longest pause before that.
const PAUSE_MAX: Duration = Duration::from_millis(40);

const WITHDRAW: &str = include_str!("sql/withdraw.sql");

/// Performs the batch and answers item by item.
pub(crate) async fn commit(shared: &Shared, batch: &[Write]) -> Vec<Result<Written, StoreError>> {
    if batch.is_empty() {
        return Vec::new();
    }
    let lane = shared.lane();
    let written = async {
        let wire = lane.wire().await?;
        let written = write(shared, &wire, batch).await?;
        Ok((wire, written))
    };
    match written.await {
        Ok((wire, written)) => answer(&wire, batch, &written).await,
        Err(failure) => {
            shared.complaints.raise(&failure);
            vec![Err(failure.into()); batch.len()]
        }
    }
}

/// Removes the first claim of a key that nobody uses, in a commit of its own.
pub(crate) async fn withdraw(shared: &Shared, attempt: &Attempt) -> Result<bool, StatementFailure> {
    if attempt.fence != Fence::FIRST {
        return Ok(false);
    }
    let lane = shared.lane();
    let wire = lane.wire().await?;
    shared.faults.at("commit.send").map_err(before)?;
    let removed = wire.query(WITHDRAW, &[&Id(attempt.id), &attempt.owner.0]).await?;
    shared.faults.at("commit.answer").map_err(after)?;
    Ok(!removed.is_empty())
}

/// The instant each item was written with; those that were not are missing.
type WrittenAt = HashMap<OperationId, Timestamp>;

async fn write(
    shared: &Shared,
    wire: &SharedConnection,
    batch: &[Write],
) -> Result<WrittenAt, StatementFailure> {
    let sealed = batch.iter().map(|write| {
        let settle = settle(write)?;
        Some(codec::seal(settle.id, settle.to.outcome()?))
    });
    let sealed: Vec<Option<Sealed>> = sealed.collect();
    let parts = Parts::new(batch, &sealed);
    let params: Vec<&(dyn ToSql + Sync)> = parts.params();
    let mut attempt = 1;
    loop {
        shared.faults.at("commit.send").map_err(before)?;
        let warnings = wire.warnings();
        let rows = wire.query(parts.text(), &params).await;
        shared.faults.at("commit.answer").map_err(after)?;
        let failure = match rows {
            Ok(_) if wire.warnings() != warnings => {
                return Err(StatementFailure::unanswered("the server warned while it committed"));
            }
            Ok(rows) => return rows.iter().map(|row| note(shared, row)).collect(),
            Err(failure) => failure,
        };
        if attempt == ATTEMPTS_MAX || !failure.is_passing() {
            return Err(failure);
        }
        attempt += 1;
        tokio::time::sleep(PAUSE_MAX.mul_f64(fastrand::f64())).await;
    }
}

fn note(
    shared: &Shared,
    row: &tokio_postgres::Row,
) -> Result<(OperationId, Timestamp), StatementFailure> {
    let Id(id) = column(row, 0)?;
    if column(row, 2)? {
        shared.watchers.settled(id);
    }
    Ok((id, Timestamp::from_micros(column(row, 1)?)))
}

/// Says for each item whether it was written, and reads what stood in the way of the others.
async fn answer(
    wire: &SharedConnection,
    batch: &[Write],
    written: &WrittenAt,
) -> Vec<Result<Written, StoreError>> {
    let missed: Vec<_> =
        batch.iter().map(Write::id).filter(|id| !written.contains_key(id)).collect();
    let mut found = HashMap::new();
    let mut unread = StoreError::unavailable("the statement did not answer for this item");
    if !missed.is_empty() {
        match row::read(wire, &missed).await {
            Ok(rows) => found = missed.into_iter().zip(rows).collect(),
            Err(failure) => unread = failure.before_sending().into(),
        }
    }
    let mut answer = |id| match written.get(&id) {
        Some(now) => Ok(Written::Done { now: *now }),
        None => {
            let found = found.remove(&id).unwrap_or_else(|| Err(unread.clone()));
            found.map(|Loaded { now, record }| Written::Refused { now, record })
        }
    };
    batch.iter().map(|write| answer(write.id())).collect()
}

fn settle(write: &Write) -> Option<&Settle> {
    match write {
        Write::Settle(settle) => Some(settle),
        Write::Claim(_) | Write::Renew(_) | Write::Step(_) => None,
    }
}
