//! What is past retention goes, as far as the clock is trusted.
//!
//! A purge walks over the table piece by piece, in the order in which it lies on disk, and removes,
//! buries or fails what is past its time. Records of one time lie side by side, so that the walk
//! meets what is due in whole pieces; it goes on as long as it does, and a little further. Nothing
//! says where to look first: a record is removed in the lap that follows its end, whatever its
//! retention is, and however its place came to be there. A table of up to [`IDLE_BLOCKS_MAX`] blocks
//! (eight megabytes) is walked over whole by every call, one of eight gigabytes in an hour and a half.

use hapax_core::{Outcome, codec, limits::PAGE_RECORDS_MAX, store::Purged};

use crate::{
    answer::Answer,
    connection::SharedConnection,
    error::{StatementFailure, after, before},
    heap_lap::{self, Piece},
    list, notes,
    row::{Id, column},
    store::Shared,
};

/// Blocks that one statement walks over.
const PIECE_BLOCKS: i64 = 256;
/// Blocks without anything to remove that one call walks over.
const IDLE_BLOCKS_MAX: i64 = 1024;
/// Blocks that one call walks over.
const WALK_BLOCKS_MAX: i64 = 16_384;

const PURGE: &str = include_str!("sql/purge.sql");
const TIME_OUT: &str = include_str!("sql/time_out.sql");
const FORGET_MESSAGES: &str = "SELECT hapax.inbox_forget($1)";

/// Removes, buries or fails up to `limit` records past retention, those of messages included, and
/// removes old notes.
pub(crate) async fn purge(shared: &Shared, limit: usize) -> Result<Purged, StatementFailure> {
    let limit = limit.min(PAGE_RECORDS_MAX);
    let wire = shared.keeper.wire().await?;
    shared.faults.at("purge.send").map_err(before)?;
    let mut purged = Purged::default();
    match walk(shared, &wire, limit, &mut purged).await {
        Err(failure) if purged.total() == 0 => return Err(failure),
        Err(failure) => tracing::debug!(?failure, "a purge ended early"),
        Ok(()) => {}
    }
    match forget_messages(&wire, limit.saturating_sub(purged.total())).await {
        Ok(messages) => purged.deleted += messages,
        Err(failure) if purged.total() == 0 => return Err(failure),
        Err(failure) => tracing::debug!(?failure, "messages were not forgotten"),
    }
    if let Err(failure) = notes::forget(&wire, limit).await {
        tracing::debug!(?failure, "old notes were not removed");
    }
    if let Err(failure) = list::forget_doubts(&wire).await {
        tracing::debug!(?failure, "doubts that are over were not removed");
    }
    shared.faults.at("purge.answer").map_err(after)?;
    Ok(purged)
}

async fn walk(
    shared: &Shared,
    wire: &SharedConnection,
    limit: usize,
    purged: &mut Purged,
) -> Result<(), StatementFailure> {
    let blocks = heap_lap::blocks(wire).await?;
    let (mut walked, mut idle) = (0, 0);
    while walked < blocks.min(WALK_BLOCKS_MAX) && idle < IDLE_BLOCKS_MAX {
        let left = limit.saturating_sub(purged.total());
        if left == 0 {
            break;
        }
        let piece = shared.purge_lap.piece(blocks, PIECE_BLOCKS);
        let spent = purge_piece(shared, wire, piece, left, purged).await;
        if !spent.as_ref().is_ok_and(|spent| *spent < left) {
            shared.purge_lap.again(piece);
        }
        if spent? == 0 {
            idle += piece.blocks();
        }
        walked += piece.blocks();
    }
    Ok(())
}

/// Purges what is in a piece; how many records of it were past retention, up to `limit`.
async fn purge_piece(
    shared: &Shared,
    wire: &SharedConnection,
    piece: Piece,
    limit: usize,
    purged: &mut Purged,
) -> Result<usize, StatementFailure> {
    let (from, to) = piece.bounds();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = wire.query(PURGE, &[&from, &to, &limit]).await?;
    let mut spent = 0;
    for row in &rows {
        purged.deleted += count(column(row, 0)?);
        purged.buried += count(column(row, 1)?);
        if let Some(pending) = column::<Option<Vec<Id>>>(row, 2)? {
            purged.timed_out += time_out(shared, wire, &pending).await?;
        }
        spent += count(column(row, 3)?);
    }
    Ok(spent)
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
