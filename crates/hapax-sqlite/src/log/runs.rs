//! Runs, as they stand in the file.

use hapax_core::{OperationId, StoreError};
use hapax_sql::{ResultRow, TransactionFault};

use super::{
    chunk::{RunEntry, chunk_of, decode, first_prefix, prefix},
    session::LogSession,
};

/// Rows after the last run that make another one.
pub(super) const RUN_ROWS: i64 = 512;
/// The most rows after the last run that are read at once.
pub(super) const TAIL_ROWS: i64 = 32 << 10;
/// Chunks that are read together where all are.
const SHARE_CHUNKS: usize = 32;
/// The version of runs this code writes.
const RUN_FORMAT: i64 = 1;

/// What stands in `hapax_runs`.
#[derive(Debug, Clone)]
pub(crate) struct SortedRun {
    pub(super) run: i64,
    pub(super) state: i64,
    pub(super) first_row: i64,
    pub(crate) last_row: i64,
    pub(crate) entries: i64,
    pub(crate) dead: i64,
    pub(super) chunks: i64,
    pub(super) built: i64,
    pub(super) into_run: i64,
}

impl SortedRun {
    /// About where its last so many entries begin.
    pub(crate) fn row_before_last(&self, entries: i64) -> i64 {
        let rows = i128::from(self.last_row - self.first_row + 1) * i128::from(entries);
        let rows = i64::try_from(rows / i128::from(self.entries.max(1))).unwrap_or(i64::MAX);
        self.last_row + 1 - rows
    }

    /// Beginnings of ids, divided so that few chunks are read at once.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (chunks, step) = (self.chunks, SHARE_CHUNKS);
        let starts = (0..chunks).step_by(step);
        let step = i64::try_from(step).unwrap_or(1);
        starts.map(move |chunk| {
            (first_prefix(chunk, chunks), first_prefix((chunk + step).min(chunks), chunks))
        })
    }
}

pub(super) const WHOLE: i64 = 1;
pub(super) const BEING_WRITTEN: i64 = 2;
pub(super) const UNUSED: i64 = 3;

const RUNS: &str = "SELECT run, state, first_row, last_row, entries, dead, chunks, built, into_run, \
     format FROM hapax_runs ORDER BY first_row, run";
const CHUNKS: &str =
    "SELECT entries FROM hapax_chunks WHERE chunk BETWEEN ?1 AND ?2 ORDER BY chunk";
/// Up to [`TAIL_ROWS`]. The number is spelled out: where it is a parameter, SQLite prepares the statement anew
/// each time.
const ROWS_AFTER: &str = "SELECT row, id FROM hapax_claims WHERE row > ?1 ORDER BY row LIMIT 32768";

/// Whether few rows up to the newest are in no run.
pub(crate) async fn is_indexed<S: LogSession>(
    session: &mut S,
    newest: i64,
) -> Result<bool, S::Error> {
    let covered = live_runs(session).await?.last().map_or(0, |run| run.last_row);
    let left = tail(session, covered).await?.len();
    Ok(newest == covered || left < usize::try_from(RUN_ROWS * 4).unwrap_or(usize::MAX))
}

/// The runs that are used, in order of their rows.
pub(crate) async fn live_runs<S: LogSession>(session: &mut S) -> Result<Vec<SortedRun>, S::Error> {
    let mut runs = all(session).await?;
    runs.retain(|run| run.state == WHOLE);
    Ok(runs)
}

/// About how many keys there are in these runs.
pub(crate) fn keys_about(runs: &[SortedRun]) -> usize {
    let keys = runs.iter().map(|run| (run.entries - run.dead).max(0)).sum::<i64>();
    usize::try_from(keys).unwrap_or(0)
}

/// The rows after this one, up to [`TAIL_ROWS`].
pub(crate) async fn tail<S: LogSession>(
    session: &mut S,
    after: i64,
) -> Result<Vec<RunEntry>, S::Error> {
    let rows = session.ask(ROWS_AFTER, &[after.into()]).await?;
    rows.iter().map(entry_of).collect::<Result<_, _>>().map_err(S::refuse)
}

/// All rows after this one.
pub(crate) async fn whole_tail<S: LogSession>(
    session: &mut S,
    after: i64,
) -> Result<Vec<RunEntry>, S::Error> {
    let mut rows = tail(session, after).await?;
    let mut last = rows.last().copied();
    while let Some(RunEntry { row, .. }) = last {
        let more = tail(session, row).await?;
        last = more.last().copied();
        rows.extend(more);
    }
    Ok(rows)
}

/// What this run has in its chunks from one to another, in order; of ids that begin like these.
pub(crate) async fn entries_of<S: LogSession>(
    session: &mut S,
    run: &SortedRun,
    (from, until): (u64, u64),
) -> Result<Vec<RunEntry>, S::Error> {
    let whole = |prefix: u64| u32::try_from(prefix).unwrap_or(u32::MAX);
    let first = chunk_of(whole(from), run.chunks);
    let last = chunk_of(whole(until.saturating_sub(1)), run.chunks);
    let numbers = [(chunk(run.run, first)).into(), (chunk(run.run, last)).into()];
    let parts = session.ask(CHUNKS, &numbers).await?;
    if i64::try_from(parts.len()).unwrap_or(0) != last - first + 1 {
        return Err(S::refuse(TransactionFault::damaged("a part of an index is missing")));
    }
    let mut entries = Vec::new();
    for part in &parts {
        let read = part.bytes(0).and_then(|bytes| decode(run.first_row, bytes));
        entries.extend(read.map_err(S::refuse)?);
    }
    entries.retain(|entry| (from..until).contains(&u64::from(entry.prefix)));
    Ok(entries)
}

/// Refuses what a newer version wrote.
pub(super) fn known_format(row: &impl ResultRow, at: usize) -> Result<(), TransactionFault> {
    match row.number(at)? {
        RUN_FORMAT => Ok(()),
        found => Err(StoreError::too_new(format!(
            "an index has format {found}; this version reads up to {RUN_FORMAT}: upgrade this process"
        ))
        .into()),
    }
}

pub(super) async fn all<S: LogSession>(session: &mut S) -> Result<Vec<SortedRun>, S::Error> {
    let rows = session.ask(RUNS, &[]).await?;
    rows.iter().map(run_of).collect::<Result<_, _>>().map_err(S::refuse)
}

/// The first column of these rows.
pub(super) fn numbers(rows: &[impl ResultRow]) -> Result<Vec<i64>, TransactionFault> {
    rows.iter().map(|row| row.number(0)).collect()
}

fn entry_of(row: &impl ResultRow) -> Result<RunEntry, TransactionFault> {
    let id = row.bytes(1)?;
    let id = id.try_into().map_err(|_| TransactionFault::damaged("an id has not 16 bytes"))?;
    let prefix = prefix(OperationId::from_bytes(id));
    Ok(RunEntry { prefix, row: row.number(0)? })
}

fn run_of(row: &impl ResultRow) -> Result<SortedRun, TransactionFault> {
    known_format(row, 9)?;
    let state = row.number(1)?;
    if ![WHOLE, BEING_WRITTEN, UNUSED].contains(&state) {
        return Err(TransactionFault::damaged(format!("an index has the unknown state {state}")));
    }
    Ok(SortedRun {
        run: row.number(0)?,
        state,
        first_row: row.number(2)?,
        last_row: row.number(3)?,
        entries: row.number(4)?,
        dead: row.number(5)?,
        chunks: row.number(6)?,
        built: row.number(7)?,
        into_run: row.number(8)?,
    })
}

pub(super) fn chunk(run: i64, number: i64) -> i64 {
    (run << 24) + number
}
