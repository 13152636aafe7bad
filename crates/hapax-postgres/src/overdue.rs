//! The search for records whose owner is overdue, without an index on anything a settle changes.
//!
//! A record is filed under its retention at the end of its lease. For each retention a *frontier*
//! is kept: nothing filed before it is pending or running. The search walks from there to now, so a
//! record is looked at once in its life, when its lease would be over.
//!
//! Why none is missed for good:
//! - a record behind the frontier runs again only by a claim, a takeover or a renewal, and each of
//!   them files it anew, at the end of its new lease;
//! - an overdue record found behind the new frontier is filed anew, at now, before the frontier
//!   moves; so one that nobody takes does not hold up the others, and is found again;
//! - a claim is filed later than it is written, so it must take longer than its lease and
//!   [`MARGIN`] to commit before the frontier can pass it unseen;
//! - a clock that stepped back leaves the frontier in the future: the search starts over; and it
//!   leaves leases there, which are looked for beyond where any lease of this clock can end;
//! - and whatever slipped through all that is met by the *lap*, which walks everything behind the
//!   frontier, a few rows with every call, again and again.
//!
//! Sweepers do not wait for each other: the frontier moves only from where the mover started.

use std::time::Duration;

use hapax_core::{
    Record, apply,
    limits::{LEASE_MAX, PAGE_RECORDS_MAX},
    store::Loaded,
    time::micros,
};

use crate::{
    connection::SharedConnection,
    error::{StatementFailure, after, before},
    row::{self, Id, column},
    store::Shared,
};

/// The frontier stays this far behind now, for claims that are slow to commit.
const MARGIN: Duration = Duration::from_secs(2);
/// Rows one step of the walk looks at.
const STEP_ROWS: i64 = 4096;
/// Steps one call takes at most, for each retention.
const STEPS_MAX: usize = 32;
/// Where records in doubt are filed: nobody looks for them.
const IN_DOUBT: i64 = i64::MAX;
/// Rows of the lap one call looks at, for each retention.
const LAP_ROWS: i64 = 512;

const CURSORS: &str = include_str!("sql/cursors.sql");
const WALK: &str = include_str!("sql/walk.sql");
const REFILE: &str = include_str!("sql/refile.sql");
const MOVE: &str = "UPDATE hapax.sweep_cursors SET frontier = $4, lap = $5 \
                    WHERE retention = $1 AND frontier = $2 AND lap = $3";

/// Up to `limit` records that are running past their lease or pending past their pick-up.
pub(crate) async fn overdue(
    shared: &Shared,
    limit: usize,
) -> Result<Vec<Record>, StatementFailure> {
    let limit = limit.min(PAGE_RECORDS_MAX);
    let wire = shared.keeper.wire().await?;
    shared.faults.at("overdue.send").map_err(before)?;
    let mut ids = Vec::new();
    for cursor in cursors(&wire).await? {
        if ids.len() < limit {
            ids.extend(cursor.search(&wire, limit - ids.len()).await?);
        }
    }
    ids.truncate(limit);
    let ids: Vec<_> = ids.into_iter().map(|Id(id)| id).collect();
    let found = row::read(&wire, &ids).await?;
    shared.faults.at("overdue.answer").map_err(after)?;
    let overdue = found.into_iter().flatten().filter_map(|Loaded { now, record }| {
        record.map(|record| *record).filter(|record| apply::is_overdue(now, record))
    });
    Ok(overdue.collect())
}

/// How far the search has come for one retention.
struct Cursor {
    retention: i64,
    frontier: i64,
    lap: i64,
    now: i64,
}

async fn cursors(wire: &SharedConnection) -> Result<Vec<Cursor>, StatementFailure> {
    let rows = wire.query(CURSORS, &[]).await?;
    let cursor = |row| {
        Ok(Cursor {
            retention: column(row, 0)?,
            frontier: column(row, 1)?,
            lap: column(row, 2)?,
            now: column(row, 3)?,
        })
    };
    rows.iter().map(cursor).collect()
}

impl Cursor {
    async fn search(
        &self,
        wire: &SharedConnection,
        limit: usize,
    ) -> Result<Vec<Id>, StatementFailure> {
        let furthest = self.now - micros(MARGIN);
        let start = if self.frontier > furthest { 0 } else { self.frontier };
        let (mut overdue, mut reached) = (Vec::new(), start);
        for _ in 0..STEPS_MAX {
            let step = self.walk(wire, reached, self.now, STEP_ROWS).await?;
            overdue.extend(step.overdue);
            reached = step.reached.unwrap_or(self.now);
            if step.reached.is_none() || overdue.len() >= limit {
                break;
            }
        }
        let lap = self.walk(wire, self.lap, start - 1, LAP_ROWS).await?;
        overdue.extend(lap.overdue);
        // No lease ends as late as this, unless it was given by a clock that was ahead.
        let beyond = self.now.saturating_add(micros(LEASE_MAX) + 1);
        let ahead = self.walk(wire, beyond, IN_DOUBT - 1, LAP_ROWS).await?;
        overdue.extend(ahead.overdue);
        let (frontier, lap) = (reached.min(furthest), lap.reached.unwrap_or(0));
        if !overdue.is_empty() {
            wire.query(REFILE, &[&overdue, &frontier]).await?;
        }
        if (frontier, lap) != (self.frontier, self.lap) {
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                [&self.retention, &self.frontier, &self.lap, &frontier, &lap];
            wire.query(MOVE, &params).await?;
        }
        Ok(overdue)
    }

    async fn walk(
        &self,
        wire: &SharedConnection,
        from: i64,
        to: i64,
        rows: i64,
    ) -> Result<WalkStep, StatementFailure> {
        let answer = wire.query(WALK, &[&self.retention, &from, &to, &self.now, &rows]).await?;
        let Some(row) = answer.first() else { return Ok(WalkStep::default()) };
        let (count, last): (i64, Option<i64>) = (column(row, 0)?, column(row, 1)?);
        let overdue = column::<Option<Vec<Id>>>(row, 2)?.unwrap_or_default();
        Ok(WalkStep { overdue, reached: last.filter(|_| count >= rows) })
    }
}

/// What a step of the walk met, and where it ended if there was more.
#[derive(Default)]
struct WalkStep {
    overdue: Vec<Id>,
    reached: Option<i64>,
}
