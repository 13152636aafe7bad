//! How far the database's clock is trusted, as kept in it.

use hapax_core::{
    StoreError, Timestamp,
    clock::{ClockMark, ClockReading},
};

use crate::{
    error::{StatementFailure, reading},
    row::column,
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
        let kept = [column(row, 1)?, column(row, 2)?, column(row, 3)?];
        Ok(reading_of(column(row, 0)?, kept))
    };
    read.await.map_err(reading)
}

/// Keeps this of the clock.
pub(crate) async fn keep(shared: &Shared, mark: ClockMark) -> Result<(), StatementFailure> {
    let [since, seen, until] = columns(mark);
    let wire = shared.keeper.wire().await?;
    wire.query(KEEP, &[&since, &seen, &until]).await.map(|_| ())
}

/// The columns of [`READ`].
pub(crate) fn reading_of(now: i64, kept: [Option<i64>; 3]) -> ClockReading {
    let instant = Timestamp::from_micros;
    let mark = match kept {
        [Some(since), Some(seen), Some(until)] => Some(ClockMark {
            steady_since: instant(since),
            seen_at: instant(seen),
            trusted_until: instant(until),
        }),
        _ => None,
    };
    ClockReading { now: instant(now), mark }
}

/// What [`KEEP`] takes.
pub(crate) fn columns(mark: ClockMark) -> [i64; 3] {
    [mark.steady_since, mark.seen_at, mark.trusted_until].map(Timestamp::as_micros)
}
