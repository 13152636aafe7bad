//! How far the store's clock is trusted, as kept in the file.

use hapax_core::{Timestamp, clock::ClockMark};
use rusqlite::{Connection, params};

/// Three columns; `NULL` where nobody ever watched the clock.
pub(crate) const READ: &str = "SELECT \
     (SELECT value FROM hapax_meta WHERE name = 'clock_steady_since'), \
     (SELECT value FROM hapax_meta WHERE name = 'clock_seen_at'), \
     (SELECT value FROM hapax_meta WHERE name = 'clock_trusted_until')";
pub(crate) const KEEP: &str = "INSERT INTO hapax_meta (name, value) VALUES \
     ('clock_steady_since', ?1), ('clock_seen_at', ?2), ('clock_trusted_until', ?3) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING 1";

/// What is kept of the clock.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Option<ClockMark>> {
    let mut statement = connection.prepare_cached(READ)?;
    statement.query_row([], |row| Ok(mark_of([row.get(0)?, row.get(1)?, row.get(2)?])))
}

/// Keeps this of the clock.
pub(crate) fn keep(connection: &Connection, mark: ClockMark) -> rusqlite::Result<()> {
    let [since, seen, until] = columns(mark);
    let mut statement = connection.prepare_cached(KEEP)?;
    statement.query_map(params![since, seen, until], |_| Ok(()))?.collect()
}

/// The three columns of [`READ`] as a mark.
pub(crate) fn mark_of([since, seen, until]: [Option<i64>; 3]) -> Option<ClockMark> {
    let instant = Timestamp::from_micros;
    Some(ClockMark {
        steady_since: instant(since?),
        seen_at: instant(seen?),
        trusted_until: instant(until?),
    })
}

fn columns(mark: ClockMark) -> [i64; 3] {
    [mark.steady_since, mark.seen_at, mark.trusted_until].map(Timestamp::as_micros)
}
