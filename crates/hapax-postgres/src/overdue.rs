//! The search for records whose owner is overdue, without an index on the table of operations.
//!
//! Whoever claims leaves in the same commit where the claims were written: one row of
//! `hapax.claim_log` for a whole batch. A search takes those rows that are older than [`MARGIN`],
//! looks at the places they name, and files what stands there unfinished in `hapax.unfinished`, with
//! the end of its lease as the time of its next look. Nearly everything is finished by then and is
//! never looked at again. What was filed is looked at when its time has come: it is finished and
//! taken out, or renewed and filed under the end of its new lease, or overdue.
//!
//! Why none is missed for good:
//! - a place keeps the version of a row that the claim wrote. Whoever writes another version of a row
//!   that is not finished by it (a renewal, a takeover, the mark of a watcher) files it himself, in
//!   the same commit;
//! - a row of the log goes only in the commit that files what it names, and only once it is seen: a
//!   claim that commits late is seen late, and nothing waits for it;
//! - what was filed is taken out only as it was seen: a record that is made to run again meanwhile
//!   has been filed anew, under another time;
//! - an overdue record that nobody takes is filed at now, behind the others, and found again;
//! - a clock that was set back leaves rows of the log and times of looks in the future: what is
//!   further ahead than any lease can end is looked at as if it were due;
//! - and whatever slipped through all that (a table that was rewritten or restored has other places; a
//!   caller of `hapax.begin` that commits without an end leaves no row in the log) is met by the
//!   *lap*, which walks over the whole table, a piece of [`LAP_BLOCKS`] with every call, again and again.
//!
//! Sweepers do not wait for each other: they skip what another one holds.

use std::{collections::HashSet, time::Duration};

use hapax_core::{
    OperationId, Record, StateTag, Timestamp, apply,
    limits::{LEASE_MAX, PAGE_RECORDS_MAX},
    store::Loaded,
    time::micros,
};

use crate::{
    connection::SharedConnection,
    error::{StatementFailure, after, before},
    heap_lap,
    row::{self, Id, column},
    store::Shared,
};

/// How old a claim is when it is looked at: most are finished by then.
const MARGIN: Duration = Duration::from_secs(2);
/// Batches of claims, or filed records, that one step looks at.
const STEP_ROWS: i64 = 1024;
/// Steps one call takes at most, of each kind.
const STEPS_MAX: usize = 32;
/// Blocks of the table that the lap walks over in one call.
const LAP_BLOCKS: i64 = 2048;
/// How much later a record that cannot be read is looked at again.
const UNREADABLE_AGAIN: Duration = Duration::from_secs(60);

const FILE_CLAIMS: &str = include_str!("sql/file_claims.sql");
const FILE_LAP: &str = include_str!("sql/file_lap.sql");
const DUE: &str = include_str!("sql/due.sql");
const REFILE: &str = include_str!("sql/refile.sql");

/// Up to `limit` records that are running past their lease or pending past their pick-up.
pub(crate) async fn overdue(
    shared: &Shared,
    limit: usize,
) -> Result<Vec<Record>, StatementFailure> {
    let limit = limit.min(PAGE_RECORDS_MAX);
    let wire = shared.keeper.wire().await?;
    shared.faults.at("overdue.send").map_err(before)?;
    file_claims(&wire).await?;
    let blocks = heap_lap::blocks(&wire).await?;
    let (from, to) = shared.sweep_lap.piece(blocks, LAP_BLOCKS).bounds();
    wire.query(FILE_LAP, &[&from, &to, &micros(MARGIN)]).await?;
    let mut overdue = OverdueRecords { limit, records: Vec::new(), ids: HashSet::new() };
    for _ in 0..STEPS_MAX {
        let all = look(&wire, &mut overdue).await?;
        if all || overdue.is_full() {
            break;
        }
    }
    shared.faults.at("overdue.answer").map_err(after)?;
    Ok(overdue.records)
}

/// What was found, each once: a step may meet again what the step before it filed.
struct OverdueRecords {
    limit: usize,
    records: Vec<Record>,
    ids: HashSet<OperationId>,
}

impl OverdueRecords {
    fn is_full(&self) -> bool {
        self.records.len() >= self.limit
    }
}

/// Files the claims that are unfinished although they are not young any more.
async fn file_claims(wire: &SharedConnection) -> Result<(), StatementFailure> {
    for _ in 0..STEPS_MAX {
        let rows = wire.query(FILE_CLAIMS, &[&micros(MARGIN), &STEP_ROWS]).await?;
        let looked: i64 = rows.first().map_or(Ok(0), |row| column(row, 0))?;
        if looked < STEP_ROWS {
            break;
        }
    }
    Ok(())
}

/// Looks at records whose time has come, and files them anew or takes them out; whether these were
/// all.
async fn look(
    wire: &SharedConnection,
    overdue: &mut OverdueRecords,
) -> Result<bool, StatementFailure> {
    let due = wire.query(DUE, &[&STEP_ROWS, &micros(LEASE_MAX)]).await?;
    let mut seen = Vec::with_capacity(due.len());
    for row in &due {
        seen.push((column::<Id>(row, 0)?, column::<i64>(row, 1)?));
    }
    let all = i64::try_from(seen.len()).unwrap_or(i64::MAX) < STEP_ROWS;
    let ids: Vec<_> = seen.iter().map(|(Id(id), _)| *id).collect();
    let found = row::read(wire, &ids).await?;
    let (mut filed, mut looked_at, mut next) = (Vec::new(), Vec::new(), Vec::new());
    for ((id, look_at), loaded) in seen.into_iter().zip(found) {
        filed.push(id);
        looked_at.push(look_at);
        next.push(match loaded {
            Ok(Loaded { record: None, .. }) => None,
            // What there is no room for keeps its place in front of those that were found.
            Ok(Loaded { now, record: Some(record) })
                if overdue.is_full() && apply::is_overdue(now, &record) =>
            {
                Some(look_at)
            }
            Ok(Loaded { now, record: Some(record) }) => next_look(now, *record, overdue),
            Err(_) => Some(look_at.saturating_add(micros(UNREADABLE_AGAIN))),
        });
    }
    if !filed.is_empty() {
        wire.query(REFILE, &[&filed, &looked_at, &next]).await?;
    }
    Ok(all)
}

/// When to look at this record again; never, if it is finished.
fn next_look(now: Timestamp, record: Record, overdue: &mut OverdueRecords) -> Option<i64> {
    match record.tag() {
        StateTag::Pending | StateTag::Running if apply::is_overdue(now, &record) => {
            if overdue.ids.insert(record.operation.id()) {
                overdue.records.push(record);
            }
            Some(now.as_micros())
        }
        StateTag::Pending | StateTag::Running => Some(record.until().as_micros()),
        StateTag::Completed
        | StateTag::Failed
        | StateTag::InDoubt
        | StateTag::Released
        | StateTag::Buried => None,
    }
}
