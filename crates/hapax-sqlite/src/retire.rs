//! What a purge does inside the writer's transaction.

use std::time::Duration;

use hapax_core::{
    OperationId, StateTag, Timestamp, apply, clock::ClockReading, codec::Row,
    limits::PAGE_RECORDS_MAX, store::Purged,
};
use rusqlite::Connection;

use crate::{
    clock_mark,
    inbox::statements::{FORGET, FORGET_ATTEMPTS},
    log, notes, ranges,
    row::{self, tables},
    steps,
};

/// The most ranges a purge looks at: the next goes on where this one ended.
const RANGES_MAX: usize = 256;
/// When to look again at a range whose due rows cannot go, because they have not ended or cannot be read.
const LOOK_AGAIN: Duration = Duration::from_secs(60 * 60);

/// Retires up to `limit` rows, in ranges that are overdue longest, then those of messages, and as many notes, as
/// far as the clock is trusted. Rows that cannot be read stay.
pub(crate) fn purge(
    connection: &Connection,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Purged> {
    let limit = limit.min(PAGE_RECORDS_MAX);
    let mark = log::ready(clock_mark::read(&mut &*connection))?;
    let now = ClockReading { now, mark }.trusted();
    notes::forget(connection, now, limit)?;
    let mut purged = Purged::default();
    for _ in 0..RANGES_MAX {
        if purged.total() == limit {
            break;
        }
        let Some(range) = ranges::due(connection, now)? else { break };
        purge_range(connection, now, range, limit, &mut purged)?;
    }
    log::ready(log::tidy_runs(&mut &*connection))?;
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

/// Retires what is due of a range, and notes when to look at it again.
fn purge_range(
    connection: &Connection,
    now: Timestamp,
    range: i64,
    limit: usize,
    purged: &mut Purged,
) -> rusqlite::Result<()> {
    let later = now.plus(LOOK_AGAIN).as_micros();
    let mut look_again: Option<i64> = None;
    let deleted = purged.deleted;
    let (first, last) = ranges::rows(range);
    for RowDue { number, id, due } in rows_due(connection, (first, last))? {
        let due = due.unwrap_or(later);
        if due > now.as_micros() {
            look_again = Some(look_again.unwrap_or(due).min(due));
        } else if purged.total() < limit {
            let next = retire(connection, now, (number, id), purged)?;
            let next = next.map(|next| if next > now.as_micros() { next } else { later });
            look_again = [look_again, next].into_iter().flatten().min();
        } else {
            look_again = Some(due);
            break;
        }
    }
    let deleted = i64::try_from(purged.deleted - deleted).unwrap_or(0);
    if deleted > 0 {
        log::ready(log::forget_dead(&mut &*connection, (first, last), deleted))?;
    }
    ranges::look_again(connection, range, look_again)
}

/// Retires a row if it is to be; when it is due next, if it is still there. A row that cannot be read, or
/// has not ended, stays.
fn retire(
    connection: &Connection,
    now: Timestamp,
    (number, id): (i64, OperationId),
    purged: &mut Purged,
) -> rusqlite::Result<Option<i64>> {
    let found = row::find_at(connection, number, id)?;
    let Some(record) = found.and_then(|found| found.ok()?.row.open(now).ok()) else {
        return Ok(Some(now.as_micros()));
    };
    let session = &mut &*connection;
    let left = match apply::purge(now, &record) {
        apply::Purge::Keep => return Ok(Some(now.as_micros())),
        apply::Purge::Delete => {
            log::ready(log::remove_due(session, number))?;
            purged.deleted += 1;
            None
        }
        apply::Purge::Bury(record) => {
            purged.buried += 1;
            Some(record)
        }
        apply::Purge::TimeOut(record) => {
            purged.timed_out += 1;
            Some(record)
        }
    };
    let has_steps = left.as_ref().is_none_or(|record| record.tag() == StateTag::Buried);
    if has_steps {
        steps::forget(connection, id)?;
    }
    let Some(record) = left else { return Ok(None) };
    let row = Row::seal(&record);
    log::ready(log::rewrite(session, number, &row))?;
    let due = if record.tag() == StateTag::Buried { record.forget_at() } else { record.expires_at };
    Ok(Some(due.as_micros()))
}

/// A row, and from when on a purge has to look at it.
struct RowDue {
    number: i64,
    id: OperationId,
    /// `None` where that is not known.
    due: Option<i64>,
}

/// Gathered before anything is written, because rows change while they are walked.
fn rows_due(connection: &Connection, (first, last): (i64, i64)) -> rusqlite::Result<Vec<RowDue>> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT c.row, c.id, c.created_at + coalesce(e.kept_for, c.kept_for) \
         + iif(e.state = 7, c.tombstone, 0)",
        tables!(),
        "WHERE c.row BETWEEN ?1 AND ?2"
    ))?;
    let rows = statement.query_map([first, last], |row| {
        let id = OperationId::from_bytes(row.get(1)?);
        Ok(RowDue { number: row.get(0)?, id, due: row.get(2).ok() })
    })?;
    rows.collect()
}
