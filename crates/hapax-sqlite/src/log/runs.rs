//! Runs: written, merged and removed in passing.
//!
//! A run is written whole or not used: one that is being merged from others takes their place in the commit
//! that writes its last chunk. A process that is killed leaves what its last commit left, and whoever
//! appends next goes on from there.

use hapax_core::StoreError;

use super::{
    chunk::{CHUNK_ENTRIES, RunEntry, chunk_of, decode, encode, first_prefix, prefix},
    session::LogSession,
};
use crate::inbox::cell::Cells;

/// Rows after the last run that make another one.
const RUN_ROWS: i64 = 512;
/// The most rows a run is made of at once, where many were left.
const RUN_ROWS_MAX: i64 = 32 << 10;
/// Neighbours that are merged into one.
const MERGED_RUNS: usize = 8;
/// Every so many rows their writer looks after the runs.
const STRIDE_ROWS: i64 = 64;
/// The most chunks it then writes, for each such stride.
const STRIDE_CHUNKS: i64 = 4;
/// The most strides a single commit makes up for.
const STRIDES_MAX: i64 = 64;
/// Chunks of a run that is no longer used that are removed at once.
const REMOVED_CHUNKS: i64 = 32;
/// Chunks that are read together where all are.
const SHARE_CHUNKS: usize = 32;
/// The version of runs this code writes.
const RUN_FORMAT: i64 = 1;
/// The most rows a run may stretch over: its entries count rows in four bytes.
const SPAN_ROWS_MAX: i64 = u32::MAX as i64;

/// What stands in `hapax_runs`.
#[derive(Debug, Clone)]
pub(crate) struct SortedRun {
    pub(super) run: i64,
    state: i64,
    pub(super) first_row: i64,
    pub(crate) last_row: i64,
    pub(crate) entries: i64,
    pub(crate) dead: i64,
    pub(super) chunks: i64,
    built: i64,
    into_run: i64,
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

const WHOLE: i64 = 1;
const BEING_WRITTEN: i64 = 2;
const UNUSED: i64 = 3;

const RUNS: &str = "SELECT run, state, first_row, last_row, entries, dead, chunks, built, into_run, \
     format FROM hapax_runs ORDER BY first_row, run";
const ADD_RUN: &str = "INSERT INTO hapax_runs \
     (run, format, state, first_row, last_row, entries, dead, chunks, built, into_run) \
     VALUES (?1, 1, ?2, ?3, ?4, ?5, 0, ?6, ?7, 0)";
const ADD_CHUNK: &str = "INSERT INTO hapax_chunks (chunk, entries) VALUES (?1, ?2)";
const CHUNKS: &str =
    "SELECT entries FROM hapax_chunks WHERE chunk BETWEEN ?1 AND ?2 ORDER BY chunk";
const MERGE_INTO: &str = "UPDATE hapax_runs SET into_run = ?1 WHERE run = ?2";
const GROW: &str = "UPDATE hapax_runs SET built = built + 1, entries = entries + ?2 WHERE run = ?1";
const USE: &str = "UPDATE hapax_runs SET state = iif(run = ?1 AND entries > 0, 1, 3), into_run = 0 \
     WHERE run = ?1 OR into_run = ?1";
const SHRINK: &str = "UPDATE hapax_runs SET built = ?2 WHERE run = ?1";
const REMOVE_CHUNKS: &str = "DELETE FROM hapax_chunks WHERE chunk BETWEEN ?1 AND ?2";
const REMOVE_RUN: &str = "DELETE FROM hapax_runs WHERE run = ?1";
const ROWS_AFTER: &str = "SELECT row, id FROM hapax_claims WHERE row > ?1 ORDER BY row LIMIT ?2";
const STILL_THERE: &str =
    "SELECT row FROM hapax_claims WHERE row IN (SELECT value FROM json_each(?1))";
const COUNT_DEAD: &str =
    "UPDATE hapax_runs SET dead = dead + ?3 WHERE first_row <= ?2 AND last_row >= ?1";
const DROP_DEAD: &str = "UPDATE hapax_runs SET state = 3 \
     WHERE state = 1 AND into_run = 0 AND dead > 0 AND NOT EXISTS \
     (SELECT 1 FROM hapax_claims AS c WHERE c.row BETWEEN first_row AND last_row)";

/// Looks after the runs, after rows were appended: how much it does depends on how many there are. Says
/// whether there is more to do.
pub(crate) async fn index_rows<S: LogSession>(
    session: &mut S,
    (before, newest): (i64, i64),
) -> Result<bool, S::Error> {
    let strides = (newest / STRIDE_ROWS - before / STRIDE_ROWS).min(STRIDES_MAX);
    if strides <= 0 {
        return Ok(false);
    }
    let mut runs = all(session).await?;
    let is_behind = write_next(session, &mut runs, newest).await?;
    start_merge(session, &mut runs).await?;
    let mut chunks = strides * STRIDE_CHUNKS;
    while chunks > 0 && merge_on(session, &mut runs).await? {
        chunks -= 1;
    }
    for _ in 0..strides {
        clear(session, &mut runs).await?;
    }
    Ok(is_behind || chunks == 0)
}

/// Whether few rows up to the newest are in no run.
pub(crate) async fn is_indexed<S: LogSession>(
    session: &mut S,
    newest: i64,
) -> Result<bool, S::Error> {
    let covered = live_runs(session).await?.last().map_or(0, |run| run.last_row);
    let left = tail(session, covered, RUN_ROWS_MAX).await?.len();
    Ok(newest == covered || left < usize::try_from(RUN_ROWS * 4).unwrap_or(usize::MAX))
}

/// Rows of this stretch are gone, so many: whatever runs have of them is of no use.
pub(crate) async fn forget_dead<S: LogSession>(
    session: &mut S,
    (first, last): (i64, i64),
    count: i64,
) -> Result<(), S::Error> {
    session.ask(COUNT_DEAD, &[first.into(), last.into(), count.into()]).await?;
    session.ask(DROP_DEAD, &[]).await?;
    let mut runs = all(session).await?;
    clear(session, &mut runs).await
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

/// The rows after these runs, up to a number of them.
pub(crate) async fn tail<S: LogSession>(
    session: &mut S,
    after: i64,
    limit: i64,
) -> Result<Vec<RunEntry>, S::Error> {
    let rows = session.ask(ROWS_AFTER, &[after.into(), limit.into()]).await?;
    rows.iter().map(entry_of).collect::<Result<_, _>>().map_err(S::refuse)
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
        return Err(S::refuse(StoreError::damaged("a part of an index is missing")));
    }
    let mut entries = Vec::new();
    for part in &parts {
        let read = part.bytes(0).and_then(|bytes| decode(run.first_row, &bytes));
        entries.extend(read.map_err(S::refuse)?);
    }
    entries.retain(|entry| (from..until).contains(&u64::from(entry.prefix)));
    Ok(entries)
}

/// Refuses what a newer version wrote.
pub(super) fn known_format(row: &Cells, at: usize) -> Result<(), StoreError> {
    match row.number(at)? {
        RUN_FORMAT => Ok(()),
        found => Err(StoreError::too_new(format!(
            "an index has format {found}; this version reads up to {RUN_FORMAT}: upgrade this process"
        ))),
    }
}

async fn all<S: LogSession>(session: &mut S) -> Result<Vec<SortedRun>, S::Error> {
    let rows = session.ask(RUNS, &[]).await?;
    rows.iter().map(run_of).collect::<Result<_, _>>().map_err(S::refuse)
}

/// Writes a run of the rows after the last, if they are many enough; says whether more are left.
async fn write_next<S: LogSession>(
    session: &mut S,
    runs: &mut Vec<SortedRun>,
    newest: i64,
) -> Result<bool, S::Error> {
    let whole = runs.iter().filter(|run| run.state == WHOLE);
    let covered = whole.map(|run| run.last_row).max().unwrap_or(0);
    if newest - covered < RUN_ROWS {
        return Ok(false);
    }
    let mut entries = tail(session, covered, RUN_ROWS_MAX).await?;
    let Some((first_row, last_row)) = ends_of(&entries) else { return Ok(false) };
    if last_row - first_row >= SPAN_ROWS_MAX {
        entries.retain(|entry| entry.row - first_row < SPAN_ROWS_MAX);
    }
    let last_row = entries.last().map_or(last_row, |entry| entry.row);
    entries.sort_unstable();
    let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let run = SortedRun {
        run: next_number(runs),
        state: WHOLE,
        first_row,
        last_row,
        entries: count,
        dead: 0,
        chunks: chunks_for(count),
        built: chunks_for(count),
        into_run: 0,
    };
    add(session, &run).await?;
    let mut rest = &entries[..];
    for number in 0..run.chunks {
        let until = first_prefix(number + 1, run.chunks);
        let (own, others) =
            rest.split_at(rest.partition_point(|entry| u64::from(entry.prefix) < until));
        rest = others;
        add_chunk(session, &run, number, own).await?;
    }
    runs.push(run);
    Ok(count == RUN_ROWS_MAX)
}

/// Begins to merge neighbours, if there are enough of about the same size, or one that leads to little.
async fn start_merge<S: LogSession>(
    session: &mut S,
    runs: &mut Vec<SortedRun>,
) -> Result<(), S::Error> {
    let Some(sources) = to_merge(runs) else { return Ok(()) };
    let (first, last) = (&sources[0], &sources[sources.len() - 1]);
    let run = SortedRun {
        run: next_number(runs),
        state: BEING_WRITTEN,
        first_row: first.first_row,
        last_row: last.last_row,
        entries: 0,
        dead: 0,
        chunks: chunks_for(sources.iter().map(|run| run.entries - run.dead).sum()),
        built: 0,
        into_run: 0,
    };
    add(session, &run).await?;
    for source in &sources {
        session.ask(MERGE_INTO, &[run.run.into(), source.run.into()]).await?;
    }
    for source in runs.iter_mut().filter(|run| sources.iter().any(|source| source.run == run.run)) {
        source.into_run = run.run;
    }
    runs.push(run);
    Ok(())
}

/// Which runs to merge: neighbours, because runs that are used never overlap.
fn to_merge(runs: &[SortedRun]) -> Option<Vec<SortedRun>> {
    let whole: Vec<_> = runs.iter().filter(|run| run.state == WHOLE).cloned().collect();
    let level = |run: &SortedRun| (run.entries / RUN_ROWS).max(1).ilog2() / MERGED_RUNS.ilog2();
    for wanted in 0..=whole.iter().map(level).max()? {
        let fits = |run: &SortedRun| run.into_run == 0 && level(run) <= wanted;
        let is_short =
            |runs: &[SortedRun]| runs[MERGED_RUNS - 1].last_row - runs[0].first_row < SPAN_ROWS_MAX;
        let mut neighbours = whole.windows(MERGED_RUNS);
        if let Some(found) = neighbours.find(|runs| runs.iter().all(fits) && is_short(runs)) {
            return Some(found.to_vec());
        }
    }
    let leads_nowhere = |run: &&SortedRun| run.into_run == 0 && run.dead * 2 > run.entries;
    whole.iter().find(leads_nowhere).map(|run| vec![run.clone()])
}

/// Writes the next chunk of the smallest run that is being written; `false` if there is none.
async fn merge_on<S: LogSession>(
    session: &mut S,
    runs: &mut [SortedRun],
) -> Result<bool, S::Error> {
    let written = runs.iter().enumerate().filter(|(_, run)| run.state == BEING_WRITTEN);
    let Some((place, _)) = written.min_by_key(|(_, run)| run.chunks) else { return Ok(false) };
    let target = runs[place].clone();
    let sources = runs.iter().filter(|run| run.into_run == target.run);
    let number = target.built;
    let share = (first_prefix(number, target.chunks), first_prefix(number + 1, target.chunks));
    let mut entries = Vec::new();
    let mut has_dead = false;
    for source in sources {
        has_dead |= source.dead > 0;
        entries.extend(entries_of(session, source, share).await?);
    }
    if has_dead {
        keep_live(session, &mut entries).await?;
    }
    entries.sort_unstable();
    add_chunk(session, &target, number, &entries).await?;
    let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    session.ask(GROW, &[target.run.into(), count.into()]).await?;
    runs[place].built += 1;
    runs[place].entries += count;
    if runs[place].built == target.chunks {
        session.ask(USE, &[target.run.into()]).await?;
        for run in runs.iter_mut().filter(|run| run.into_run == target.run) {
            (run.state, run.into_run) = (UNUSED, 0);
        }
        runs[place].state = if runs[place].entries > 0 { WHOLE } else { UNUSED };
    }
    Ok(true)
}

/// Leaves out what leads to rows that are gone.
async fn keep_live<S: LogSession>(
    session: &mut S,
    entries: &mut Vec<RunEntry>,
) -> Result<(), S::Error> {
    let rows: Vec<_> = entries.iter().map(|entry| entry.row.to_string()).collect();
    let rows = format!("[{}]", rows.join(","));
    let there = session.ask(STILL_THERE, &[(&*rows).into()]).await?;
    let there: Result<Vec<_>, _> = there.iter().map(|row| row.number(0)).collect();
    let mut there = there.map_err(S::refuse)?;
    there.sort_unstable();
    entries.retain(|entry| there.binary_search(&entry.row).is_ok());
    Ok(())
}

/// Removes a part of what is no longer used.
async fn clear<S: LogSession>(session: &mut S, runs: &mut Vec<SortedRun>) -> Result<(), S::Error> {
    let Some(place) = runs.iter().position(|run| run.state == UNUSED) else { return Ok(()) };
    let run = &mut runs[place];
    let left = (run.built - REMOVED_CHUNKS).max(0);
    let chunks = [chunk(run.run, left).into(), chunk(run.run, run.built).into()];
    session.ask(REMOVE_CHUNKS, &chunks).await?;
    if left > 0 {
        run.built = left;
        session.ask(SHRINK, &[run.run.into(), left.into()]).await?;
    } else {
        session.ask(REMOVE_RUN, &[run.run.into()]).await?;
        runs.remove(place);
    }
    Ok(())
}

async fn add<S: LogSession>(session: &mut S, run: &SortedRun) -> Result<(), S::Error> {
    let SortedRun { run, state, first_row, last_row, entries, chunks, built, .. } = *run;
    let values = [run, state, first_row, last_row, entries, chunks, built].map(Into::into);
    session.ask(ADD_RUN, &values).await.map(|_| ())
}

async fn add_chunk<S: LogSession>(
    session: &mut S,
    run: &SortedRun,
    number: i64,
    entries: &[RunEntry],
) -> Result<(), S::Error> {
    let entries = encode(run.first_row, entries).map_err(S::refuse)?;
    session.ask(ADD_CHUNK, &[chunk(run.run, number).into(), (&*entries).into()]).await.map(|_| ())
}

fn entry_of(row: &Cells) -> Result<RunEntry, StoreError> {
    let id = row.bytes(1)?.try_into().map_err(|_| StoreError::damaged("an id has not 16 bytes"))?;
    let prefix = prefix(hapax_core::OperationId::from_bytes(id));
    Ok(RunEntry { prefix, row: row.number(0)? })
}

fn run_of(row: &Cells) -> Result<SortedRun, StoreError> {
    known_format(row, 9)?;
    Ok(SortedRun {
        run: row.number(0)?,
        state: row.number(1)?,
        first_row: row.number(2)?,
        last_row: row.number(3)?,
        entries: row.number(4)?,
        dead: row.number(5)?,
        chunks: row.number(6)?,
        built: row.number(7)?,
        into_run: row.number(8)?,
    })
}

fn ends_of(entries: &[RunEntry]) -> Option<(i64, i64)> {
    Some((entries.first()?.row, entries.last()?.row))
}

fn next_number(runs: &[SortedRun]) -> i64 {
    runs.iter().map(|run| run.run).max().unwrap_or(0) + 1
}

fn chunks_for(entries: i64) -> i64 {
    (entries.max(1) + CHUNK_ENTRIES - 1) / CHUNK_ENTRIES
}

fn chunk(run: i64, number: i64) -> i64 {
    (run << 24) + number
}
