//! What is past retention goes, as far as the clock is trusted.
//!
//! Records are walked from the oldest of each retention. What is met before its time stays where it
//! is; what is due and still needed is filed anew, so that the walk never starts with a crowd of
//! records it cannot remove.

use hapax_core::{Outcome, codec, limits::PAGE_RECORDS_MAX, store::Purged};

use crate::{
    answer::Answer,
    connection::SharedConnection,
    error::{StatementFailure, after, before},
    notes,
    row::{Id, column},
    store::Shared,
};

/// Rows looked at for each retention beyond those that may be removed.
const LOOK_AHEAD_ROWS: i64 = 1000;

const RETENTIONS: &str = include_str!("sql/retentions.sql");
const PURGE: &str = include_str!("sql/purge.sql");
const TIME_OUT: &str = include_str!("sql/time_out.sql");
const FORGET_MESSAGES: &str = "SELECT hapax.inbox_forget($1)";

/// Removes, buries or fails up to `limit` records past retention, those of messages included, and
/// removes old notes.
pub(crate) async fn purge(shared: &Shared, limit: usize) -> Result<Purged, StatementFailure> {
    let limit = limit.min(PAGE_RECORDS_MAX);
    let wire = shared.keeper.wire().await?;
    shared.faults.at("purge.send").map_err(before)?;
    let retentions = wire.query(RETENTIONS, &[]).await?;
    let mut retentions: Vec<i64> =
        retentions.iter().map(|row| column(row, 0)).collect::<Result<_, _>>()?;
    // Whoever comes first may use up the limit: it should not always be the same.
    fastrand::shuffle(&mut retentions);
    let mut purged = Purged::default();
    for retention in retentions {
        let left = limit.saturating_sub(purged.total());
        if left == 0 {
            break;
        }
        match purge_class(shared, &wire, retention, left, &mut purged).await {
            Err(failure) if purged.total() == 0 => return Err(failure),
            Err(failure) => tracing::debug!(?failure, "a purge ended early"),
            Ok(()) => {}
        }
    }
    match forget_messages(&wire, limit.saturating_sub(purged.total())).await {
        Ok(messages) => purged.deleted += messages,
        Err(failure) if purged.total() == 0 => return Err(failure),
        Err(failure) => tracing::debug!(?failure, "messages were not forgotten"),
    }
    if let Err(failure) = notes::forget(&wire, limit).await {
        tracing::debug!(?failure, "old notes were not removed");
    }
    shared.faults.at("purge.answer").map_err(after)?;
    Ok(purged)
}

async fn purge_class(
    shared: &Shared,
    wire: &SharedConnection,
    retention: i64,
    limit: usize,
    purged: &mut Purged,
) -> Result<(), StatementFailure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = wire.query(PURGE, &[&retention, &(limit + LOOK_AHEAD_ROWS), &limit]).await?;
    for row in &rows {
        purged.deleted += count(column(row, 0)?);
        purged.buried += count(column(row, 1)?);
        if let Some(pending) = column::<Option<Vec<Id>>>(row, 2)? {
            purged.timed_out += time_out(shared, wire, &pending).await?;
        }
    }
    Ok(())
}

/// Removes up to so many messages that are past their consumer's retention.
async fn forget_messages(wire: &SharedConnection, limit: usize) -> Result<usize, StatementFailure> {
    if limit == 0 {
        return Ok(0);
    }
    let rows = wire.query(FORGET_MESSAGES, &[&i64::try_from(limit).unwrap_or(i64::MAX)]).await?;
    rows.first().map_or(Ok(0), |row| column(row, 0).map(count))
}

/// Lets pending records that nobody came for fail.
async fn time_out(
    shared: &Shared,
    wire: &SharedConnection,
    pending: &[Id],
) -> Result<usize, StatementFailure> {
    let outcome = Outcome::never_run();
    let sealed: Vec<_> = pending.iter().map(|Id(id)| codec::seal(*id, &outcome)).collect();
    let answers: Vec<_> = sealed.iter().map(Answer).collect();
    let failed = wire.query(TIME_OUT, &[&pending, &answers]).await?;
    for row in &failed {
        if column(row, 1)? {
            shared.watchers.settled(column::<Id>(row, 0)?.0);
        }
    }
    Ok(failed.len())
}

fn count(rows: i64) -> usize {
    usize::try_from(rows).unwrap_or(0)
}
