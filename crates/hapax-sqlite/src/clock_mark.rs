//! How far the store's clock is trusted, as kept in the file.

use hapax_core::{Timestamp, clock::ClockMark};
use hapax_sql::clock_mark;
use rusqlite::{Connection, params};

use crate::log::LogSession;

/// Three columns; `NULL` where nobody ever watched the clock.
pub(crate) const READ: &str = "SELECT \
     (SELECT value FROM hapax_meta WHERE name = 'clock_steady_since'), \
     (SELECT value FROM hapax_meta WHERE name = 'clock_seen_at'), \
     (SELECT value FROM hapax_meta WHERE name = 'clock_trusted_until')";
pub(crate) const KEEP: &str = "INSERT INTO hapax_meta (name, value) VALUES \
     ('clock_steady_since', ?1), ('clock_seen_at', ?2), ('clock_trusted_until', ?3) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING 1";

/// What is kept of the clock.
pub(crate) async fn read<S: LogSession>(session: &mut S) -> Result<Option<ClockMark>, S::Error> {
    let rows = session.ask(READ, &[]).await?;
    rows.first().map_or(Ok(None), |row| clock_mark(row, 0)).map_err(S::refuse)
}

/// Keeps this of the clock.
pub(crate) fn keep(connection: &Connection, mark: ClockMark) -> rusqlite::Result<()> {
    let [since, seen, until] = columns(mark);
    let mut statement = connection.prepare_cached(KEEP)?;
    statement.query_map(params![since, seen, until], |_| Ok(()))?.collect()
}

fn columns(mark: ClockMark) -> [i64; 3] {
    [mark.steady_since, mark.seen_at, mark.trusted_until].map(Timestamp::as_micros)
}
