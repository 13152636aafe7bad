//! How far the database's clock is trusted, as kept in it.

use hapax_core::{
    StoreError, Timestamp,
    clock::{ClockMark, ClockReading},
};
use hapax_sql::clock_mark;

use crate::{
    error::{StatementFailure, reading},
    row::{TokioRow, column},
    store::Shared,
};

/// What the clock says, and three columns that are `NULL` where nobody ever watched it.
pub(crate) const READ: &str = "SELECT hapax.clock(), m.steady_since, m.seen_at, m.trusted_until \
     FROM (VALUES (0)) AS always(there) LEFT JOIN hapax.clock_mark AS m ON true";
pub(crate) const KEEP: &str = "INSERT INTO hapax.clock_mark (steady_since, seen_at, trusted_until) \
     VALUES ($1::int8, $2::int8, $3::int8) ON CONFLICT (only_row) DO UPDATE \
     SET steady_since = $1::int8, seen_at = $2::int8, trusted_until = $3::int8 \
     RETURNING 1::int8";

/// What the clock says, and what is kept of it.
pub(crate) async fn read(shared: &Shared) -> Result<ClockReading, StoreError> {
    let read = async {
        let rows = shared.reader.wire().await?.query(READ, &[]).await?;
        let row =
            rows.first().ok_or_else(|| StatementFailure::unanswered("the clock has no row"))?;
        let now = Timestamp::from_micros(column(row, 0)?);
        let mark = clock_mark(&TokioRow(row), 1).map_err(StatementFailure::of_row)?;
        Ok(ClockReading { now, mark })
    };
    read.await.map_err(reading)
}

/// Keeps this of the clock.
pub(crate) async fn keep(shared: &Shared, mark: ClockMark) -> Result<(), StatementFailure> {
    let [since, seen, until] = columns(mark);
    let wire = shared.keeper.wire().await?;
    wire.query(KEEP, &[&since, &seen, &until]).await.map(|_| ())
}

/// What [`KEEP`] takes.
pub(crate) fn columns(mark: ClockMark) -> [i64; 3] {
    [mark.steady_since, mark.seen_at, mark.trusted_until].map(Timestamp::as_micros)
}
