//! Runs are written, merged and removed in passing.
//!
//! A run is written whole or not used: one that is being merged from others takes their place in the commit
//! that writes its last chunk. A process that is killed leaves what its last commit left, and whoever
//! appends next goes on from there.

use std::ops::Range;

use hapax_sql::Value;

use super::{
    chunk::{CHUNK_ENTRIES, RunEntry, encode, first_prefix},
    runs::{
        BEING_WRITTEN, RUN_ROWS, SortedRun, TAIL_ROWS, UNUSED, WHOLE, all, chunk, entries_of,
        numbers, tail,
    },
    session::LogSession,
};

/// Neighbours that are merged into one.
const MERGED_RUNS: usize = 8;
/// Every so many rows their writer looks after the runs.
const STRIDE_ROWS: i64 = 128;
/// The most chunks it then writes, for each such stride.
const STRIDE_CHUNKS: i64 = 8;
/// The most strides a single commit makes up for.
const STRIDES_MAX: i64 = 32;
/// The strides a purge stands for.
const IDLE_STRIDES: i64 = 4;
/// Chunks of a run that is no longer used that are removed at once.
const REMOVED_CHUNKS: i64 = 32;
/// The most rows a run may stretch over: its entries count rows in four bytes.
const SPAN_ROWS_MAX: i64 = u32::MAX as i64;

const ADD_RUN: &str = "INSERT INTO hapax_runs \
     (run, format, state, first_row, last_row, entries, dead, chunks, built, into_run) \
     VALUES (?1, 1, ?2, ?3, ?4, ?5, 0, ?6, ?7, 0)";
const ADD_CHUNK: &str = "INSERT INTO hapax_chunks (chunk, entries) VALUES (?1, ?2)";
const MERGE_INTO: &str = "UPDATE hapax_runs SET into_run = ?1 WHERE run = ?2";
const GROW: &str =
    "UPDATE hapax_runs SET built = built + ?2, entries = entries + ?3 WHERE run = ?1";
const USE: &str = "UPDATE hapax_runs SET state = iif(run = ?1 AND entries > 0, 1, 3), into_run = 0 \
     WHERE run = ?1 OR into_run = ?1";
const SHRINK: &str = "UPDATE hapax_runs SET built = ?2 WHERE run = ?1";
const REMOVE_CHUNKS: &str = "DELETE FROM hapax_chunks WHERE chunk BETWEEN ?1 AND ?2";
const REMOVE_RUN: &str = "DELETE FROM hapax_runs WHERE run = ?1";
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
    Ok(work_on(session, runs, strides).await? || is_behind)
}

/// Goes on with what was begun, where nothing is appended; how much depends on nothing.
pub(crate) async fn tidy_runs<S: LogSession>(session: &mut S) -> Result<(), S::Error> {
    let runs = all(session).await?;
    work_on(session, runs, IDLE_STRIDES).await.map(|_| ())
}

/// Rows of this stretch are gone, so many: whatever runs have of them is of no use.
pub(crate) async fn forget_dead<S: LogSession>(
    session: &mut S,
    (first, last): (i64, i64),
    count: i64,
) -> Result<(), S::Error> {
    session.ask(COUNT_DEAD, &[first.into(), last.into(), count.into()]).await?;
    session.ask(DROP_DEAD, &[]).await.map(|_| ())
}

/// Merges and removes, as much as is due after so many strides; says whether there is more to do.
async fn work_on<S: LogSession>(
    session: &mut S,
    mut runs: Vec<SortedRun>,
    strides: i64,
) -> Result<bool, S::Error> {
    start_merge(session, &mut runs).await?;
    let (mut left, mut is_done) = (strides, false);
    while left > 0 && !is_done {
        left -= 1;
        is_done = merge_on(session, &mut runs, STRIDE_CHUNKS).await? == 0;
    }
    for _ in 0..strides {
        clear(session, &mut runs).await?;
    }
    Ok(!is_done)
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
    let mut entries = tail(session, covered).await?;
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
    add_chunks(session, &run, 0..run.chunks, &entries).await?;
    runs.push(run);
    Ok(count == TAIL_ROWS)
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

/// Which runs to merge: neighbours, because runs that are used never overlap, and such that each at least
/// doubles, so that no entry is written often.
fn to_merge(runs: &[SortedRun]) -> Option<Vec<SortedRun>> {
    let whole: Vec<_> = runs.iter().filter(|run| run.state == WHOLE).cloned().collect();
    let entries = |runs: &[SortedRun]| runs.iter().map(|run| run.entries).sum::<i64>();
    let is_fit = |runs: &&[SortedRun]| {
        let largest = runs.iter().map(|run| run.entries).max().unwrap_or(0);
        let rows = runs[MERGED_RUNS - 1].last_row - runs[0].first_row;
        runs.iter().all(|run| run.into_run == 0)
            && largest * 2 <= entries(runs)
            && rows < SPAN_ROWS_MAX
    };
    let neighbours = whole.windows(MERGED_RUNS).filter(is_fit).min_by_key(|runs| entries(runs));
    let leads_nowhere = |run: &&SortedRun| run.into_run == 0 && run.dead * 2 > run.entries;
    let lone = || whole.iter().find(leads_nowhere).map(std::slice::from_ref);
    neighbours.or_else(lone).map(<[SortedRun]>::to_vec)
}

/// Writes the next chunks, up to so many, of the smallest run that is being written; how many it wrote.
async fn merge_on<S: LogSession>(
    session: &mut S,
    runs: &mut [SortedRun],
    chunks_max: i64,
) -> Result<i64, S::Error> {
    let written = runs.iter().enumerate().filter(|(_, run)| run.state == BEING_WRITTEN);
    let Some((place, _)) = written.min_by_key(|(_, run)| run.chunks) else { return Ok(0) };
    let target = runs[place].clone();
    let numbers = target.built..target.chunks.min(target.built + chunks_max);
    let until = |chunk: i64| first_prefix(chunk, target.chunks);
    let mut entries = Vec::new();
    let mut has_dead = false;
    for source in runs.iter().filter(|run| run.into_run == target.run) {
        has_dead |= source.dead > 0;
        let share = (until(numbers.start), until(numbers.end));
        entries.extend(entries_of(session, source, share).await?);
    }
    if has_dead {
        keep_live(session, &mut entries).await?;
    }
    // Those of each source are in order already, which a stable sort makes use of.
    entries.sort();
    add_chunks(session, &target, numbers.clone(), &entries).await?;
    let chunks = numbers.end - numbers.start;
    let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    session.ask(GROW, &[target.run.into(), chunks.into(), count.into()]).await?;
    runs[place].built += chunks;
    runs[place].entries += count;
    if runs[place].built == target.chunks {
        session.ask(USE, &[target.run.into()]).await?;
        for run in runs.iter_mut().filter(|run| run.into_run == target.run) {
            (run.state, run.into_run) = (UNUSED, 0);
        }
        runs[place].state = if runs[place].entries > 0 { WHOLE } else { UNUSED };
    }
    Ok(chunks)
}

/// Leaves out what leads to rows that are gone.
async fn keep_live<S: LogSession>(
    session: &mut S,
    entries: &mut Vec<RunEntry>,
) -> Result<(), S::Error> {
    let rows: Vec<_> = entries.iter().map(|entry| entry.row).collect();
    let there = session.ask(STILL_THERE, &[Value::Numbers(&rows)]).await?;
    let mut there = numbers(&there).map_err(S::refuse)?;
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

/// Writes these chunks of a run, whose entries these are.
async fn add_chunks<S: LogSession>(
    session: &mut S,
    run: &SortedRun,
    numbers: Range<i64>,
    entries: &[RunEntry],
) -> Result<(), S::Error> {
    let mut rest = entries;
    for number in numbers {
        let until = first_prefix(number + 1, run.chunks);
        let own = rest.partition_point(|entry| u64::from(entry.prefix) < until);
        let (own, others) = rest.split_at(own);
        rest = others;
        let own = encode(run.first_row, own).map_err(S::refuse)?;
        session.ask(ADD_CHUNK, &[chunk(run.run, number).into(), (&*own).into()]).await?;
    }
    Ok(())
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
