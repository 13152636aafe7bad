//! When a purge has to look at rows, kept for a thousand of them at a time.
//!
//! A range is never due later than one of its rows. With one retention for all, ranges come due in order,
//! each once; where retentions differ, a range is looked at as often as it takes, and those in between are
//! skipped.

use hapax_core::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

/// Rows in a range, as a power of two.
const RANGE_ROWS_LOG2: u32 = 10;

/// A range is due no later than this.
pub(crate) const LOWER: &str = "INSERT INTO hapax_ranges (range, due) VALUES (?1, ?2) \
     ON CONFLICT (range) DO UPDATE SET due = excluded.due WHERE excluded.due < due";
const DUE: &str = "SELECT range FROM hapax_ranges WHERE due <= ?1 ORDER BY due LIMIT 1";
const SET: &str = "UPDATE hapax_ranges SET due = ?2 WHERE range = ?1";
const REMOVE: &str = "DELETE FROM hapax_ranges WHERE range = ?1";

/// The range of a row.
pub(crate) fn of(row: i64) -> i64 {
    row >> RANGE_ROWS_LOG2
}

/// The first and the last row of a range.
pub(crate) fn rows(range: i64) -> (i64, i64) {
    (range << RANGE_ROWS_LOG2, ((range + 1) << RANGE_ROWS_LOG2) - 1)
}

/// The range that is due longest.
pub(crate) fn due(connection: &Connection, now: Timestamp) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached(DUE)?.query_row([now.as_micros()], |row| row.get(0)).optional()
}

/// When a range is to be looked at again; `None` where none of its rows is left.
pub(crate) fn look_again(
    connection: &Connection,
    range: i64,
    at: Option<i64>,
) -> rusqlite::Result<()> {
    match at {
        Some(due) => connection.prepare_cached(SET)?.execute([range, due])?,
        None => connection.prepare_cached(REMOVE)?.execute([range])?,
    };
    Ok(())
}
