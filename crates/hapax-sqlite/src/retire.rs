//! What a purge does inside the writer's transaction.

use hapax_core::{
    OperationId, Timestamp, apply, clock::ClockReading, codec::Row, limits::PAGE_RECORDS_MAX,
    store::Purged,
};
use rusqlite::Connection;

use crate::{
    clock_mark,
    inbox::statements::{FORGET, FORGET_ATTEMPTS},
    notes,
    row::{self, NumberedRow, columns},
    steps,
};

/// Retires up to `limit` rows, the longest overdue first, then those of messages, and as many notes, as
/// far as the clock is trusted. Rows that cannot be read stay.
pub(crate) fn purge(
    connection: &Connection,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Purged> {
    let limit = limit.min(PAGE_RECORDS_MAX);
    let now = ClockReading { now, mark: clock_mark::read(connection)? }.trusted();
    notes::forget(connection, now, limit)?;
    let mut purged = Purged::default();
    for Due { number, id, purge } in due(connection, now, limit)? {
        match purge {
            apply::Purge::Keep => {}
            apply::Purge::Delete => {
                row::delete(connection, number)?;
                steps::forget(connection, id)?;
                purged.deleted += 1;
            }
            apply::Purge::Bury(record) => {
                row::update(connection, number, &Row::seal(&record))?;
                steps::forget(connection, id)?;
                purged.buried += 1;
            }
            apply::Purge::TimeOut(record) => {
                row::update(connection, number, &Row::seal(&record))?;
                purged.timed_out += 1;
            }
        }
    }
    for text in [FORGET, FORGET_ATTEMPTS] {
        let left = i64::try_from(limit.saturating_sub(purged.total())).unwrap_or(i64::MAX);
        purged.deleted += removed(connection, text, now, left)?;
    }
    Ok(purged)
}

/// Runs a statement that names each row it removes; how many there were.
fn removed(
    connection: &Connection,
    text: &str,
    now: Timestamp,
    most: i64,
) -> rusqlite::Result<usize> {
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query([most, now.as_micros()])?;
    let mut removed = 0;
    while rows.next()?.is_some() {
        removed += 1;
    }
    Ok(removed)
}

/// A row that is past its time, and what becomes of it.
struct Due {
    number: i64,
    id: OperationId,
    purge: apply::Purge,
}

/// Decided before anything is written, because the index that is walked changes with the rows.
fn due(connection: &Connection, now: Timestamp, limit: usize) -> rusqlite::Result<Vec<Due>> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " FROM hapax_operations INDEXED BY hapax_operations_due WHERE state <> 2 AND state <> 5
         AND created_at + kept_for + iif(state = 7, tombstone, 0) <= ?1
         ORDER BY created_at + kept_for + iif(state = 7, tombstone, 0)"
    ))?;
    let mut rows = statement.query([now.as_micros()])?;
    let mut decided = Vec::new();
    while decided.len() < limit
        && let Some(found) = rows.next()?
    {
        let Ok(NumberedRow { number, row }) = row::read(found) else { continue };
        let Ok(record) = row.open(now) else { continue };
        match apply::purge(now, &record) {
            apply::Purge::Keep => {}
            purge @ (apply::Purge::Delete | apply::Purge::Bury(_) | apply::Purge::TimeOut(_)) => {
                decided.push(Due { number, id: record.operation.id(), purge });
            }
        }
    }
    Ok(decided)
}
