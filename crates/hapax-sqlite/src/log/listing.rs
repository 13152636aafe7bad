//! Rows in order of their ids, a share of all ids at a time.

use hapax_core::OperationId;

use super::{
    chunk::{RunEntry, first_prefix, prefix},
    runs::{SortedRun, entries_of, keys_about, live_runs, whole_tail},
    session::LogSession,
};

/// Rows that are looked at together, about.
const SHARE_ROWS: usize = 2000;

/// A walk through all rows.
pub(crate) struct IdWalk {
    runs: Vec<SortedRun>,
    /// Rows after the runs.
    tail: Vec<RunEntry>,
    /// Into how many shares the ids are divided, and which is next.
    shares: i64,
    next: i64,
}

impl IdWalk {
    /// From the share of this id on.
    pub(crate) async fn after<S: LogSession>(
        session: &mut S,
        id: Option<OperationId>,
    ) -> Result<Self, S::Error> {
        let runs = live_runs(session).await?;
        let covered = runs.last().map_or(0, |run| run.last_row);
        let tail = whole_tail(session, covered).await?;
        let shares = 1 + (keys_about(&runs) + tail.len()) / SHARE_ROWS;
        let shares = i64::try_from(shares).unwrap_or(i64::MAX);
        let next = id.map_or(0, |id| super::chunk::chunk_of(prefix(id), shares));
        Ok(Self { runs, tail, shares, next })
    }

    /// The rows that may have ids of the next share; `None` after the last.
    pub(crate) async fn share<S: LogSession>(
        &mut self,
        session: &mut S,
    ) -> Result<Option<Vec<i64>>, S::Error> {
        if self.next >= self.shares {
            return Ok(None);
        }
        let share =
            (first_prefix(self.next, self.shares), first_prefix(self.next + 1, self.shares));
        self.next += 1;
        let has = |entry: &&RunEntry| (share.0..share.1).contains(&u64::from(entry.prefix));
        let mut rows: Vec<_> = self.tail.iter().filter(has).map(|entry| entry.row).collect();
        for run in &self.runs {
            rows.extend(entries_of(session, run, share).await?.iter().map(|entry| entry.row));
        }
        Ok(Some(rows))
    }
}
