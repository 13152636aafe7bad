use hapax_core::{Timestamp, clock::ClockMark};

use crate::{ResultRow, TransactionFault};

/// What was kept of a clock, in three columns from this one on: since when it is steady, when it was seen, until
/// when it is trusted. `None` where nobody ever watched it.
pub fn clock_mark(
    row: &impl ResultRow,
    from: usize,
) -> Result<Option<ClockMark>, TransactionFault> {
    let instant = |at: usize| -> Result<_, TransactionFault> {
        Ok(row.maybe_number(from + at)?.map(Timestamp::from_micros))
    };
    Ok(match (instant(0)?, instant(1)?, instant(2)?) {
        (Some(steady_since), Some(seen_at), Some(trusted_until)) => {
            Some(ClockMark { steady_since, seen_at, trusted_until })
        }
        (_, _, _) => None,
    })
}
