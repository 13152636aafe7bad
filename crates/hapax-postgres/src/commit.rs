//! A batch as one statement: what it writes, it writes in one commit.
//!
//! Settles, renewals and takeovers are updates that name what they expect; first claims are
//! inserts that give way. What was not written is then read by a second statement, with a snapshot
//! of its own: in one statement, a claim that lost a race would find nothing at all.

use std::{collections::HashMap, time::Duration};

use hapax_core::{
    Attempt, Fence, OperationId, StoreError, Timestamp,
    codec::{self, Sealed},
    store::{Batch, Claimed, Committed, Kept, Renewed, Settled},
};
use tokio_postgres::types::ToSql;

use crate::{
    batch::{Parts, span},
    connection::Wire,
    error::{Failure, after, before},
    row::{self, Found, Id, column},
    store::Shared,
};

/// Times a batch is sent again because others were in its way.
const ATTEMPTS_MAX: u32 = 4;
/// Longest pause before that.
const PAUSE_MAX: Duration = Duration::from_millis(40);

const WITHDRAW: &str = include_str!("sql/withdraw.sql");
const PREPARE_BUCKETS: &str = include_str!("sql/prepare_buckets.sql");

/// Performs the batch and answers item by item.
pub(crate) async fn commit(shared: &Shared, batch: &Batch) -> Committed {
    if batch.is_empty() {
        return Committed::default();
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
            batch.all_failed(&failure.into())
        }
    }
}

/// Removes the first claim of a key that nobody uses, in a commit of its own.
pub(crate) async fn withdraw(shared: &Shared, attempt: &Attempt) -> Result<bool, Failure> {
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
type Written = HashMap<OperationId, Timestamp>;

async fn write(shared: &Shared, wire: &Wire, batch: &Batch) -> Result<Written, Failure> {
    let sealed =
        batch.settles.iter().map(|settle| Some(codec::seal(settle.id, settle.to.outcome()?)));
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
                return Err(Failure::unanswered("the server warned while it committed"));
            }
            Ok(rows) => return rows.iter().map(|row| note(shared, row)).collect(),
            Err(failure) => failure,
        };
        if attempt == ATTEMPTS_MAX {
            return Err(failure);
        }
        attempt += 1;
        if failure.is_missing_bucket() {
            prepare_buckets(wire, batch).await?;
        } else if failure.is_passing() {
            tokio::time::sleep(PAUSE_MAX.mul_f64(fastrand::f64())).await;
        } else {
            return Err(failure);
        }
    }
}

fn note(shared: &Shared, row: &tokio_postgres::Row) -> Result<(OperationId, Timestamp), Failure> {
    let Id(id) = column(row, 0)?;
    if column(row, 2)? {
        shared.watchers.settled(id);
    }
    Ok((id, Timestamp::from_micros(column(row, 1)?)))
}

async fn prepare_buckets(wire: &Wire, batch: &Batch) -> Result<(), Failure> {
    let ids: Vec<_> = batch.settles.iter().map(|settle| Id(settle.id)).collect();
    let keeps: Vec<_> = batch.settles.iter().map(|settle| span(settle.keep)).collect();
    wire.query(PREPARE_BUCKETS, &[&ids, &keeps]).await.map_err(Failure::before_sending)?;
    Ok(())
}

/// Says for each item whether it was written, and reads what stood in the way of the others.
async fn answer(wire: &Wire, batch: &Batch, written: &Written) -> Committed {
    let ids = batch.settles.iter().map(|settle| settle.id);
    let ids = ids.chain(batch.renews.iter().map(|renew| renew.id));
    let ids = ids.chain(batch.steps.iter().map(|keep| keep.id));
    let ids = ids.chain(batch.claims.iter().map(|claim| claim.operation.id()));
    let missed: Vec<_> = ids.filter(|id| !written.contains_key(id)).collect();
    let mut found = HashMap::new();
    let mut unread = StoreError::unavailable("the statement did not answer for this item");
    if !missed.is_empty() {
        match row::read(wire, &missed).await {
            Ok(rows) => found = missed.into_iter().zip(rows).collect(),
            Err(failure) => unread = failure.before_sending().into(),
        }
    }
    let mut missed = |id| found.remove(&id).ok_or_else(|| unread.clone());
    let mut lost = |id| missed(id).and_then(|found: Found| found.record.map(|_| ()));
    Committed {
        settles: (batch.settles.iter())
            .map(|settle| match written.get(&settle.id) {
                Some(now) => Ok(Settled::Done { now: *now }),
                None => lost(settle.id).map(|()| Settled::Lost),
            })
            .collect(),
        renews: (batch.renews.iter())
            .map(|renew| match written.get(&renew.id) {
                Some(now) => Ok(Renewed::Done { now: *now }),
                None => lost(renew.id).map(|()| Renewed::Lost),
            })
            .collect(),
        steps: (batch.steps.iter())
            .map(|keep| match written.get(&keep.id) {
                Some(now) => Ok(Kept::Done { now: *now }),
                None => lost(keep.id).map(|()| Kept::Lost),
            })
            .collect(),
        claims: (batch.claims.iter().map(|claim| claim.operation.id()))
            .map(|id| match written.get(&id) {
                Some(now) => Ok(Claimed::Won { now: *now }),
                None => {
                    let Found { now, record } = missed(id)?;
                    Ok(Claimed::Found { now, record: record?.map(Box::new) })
                }
            })
            .collect(),
    }
}
