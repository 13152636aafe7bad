//! Where operations are, remembered: by four bytes of their ids, the newest of them with their rows.
//!
//! It is shared by the writer and the readers of a store. A row never becomes another's, so what is
//! remembered is never wrong, only late or out of date: whoever uses it first adds the rows of its own
//! snapshot that are newer, and reads the row to see whether it is the one. Nothing is ever taken out;
//! what grows too large is loaded anew.

mod filter;
mod key_map;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hapax_core::OperationId;
use rusqlite::Connection;

use self::{filter::BloomFilter, key_map::KeyMap};
use crate::log::{self, RunEntry};

/// So many keys may be gone before those that are there are loaded anew, and as many again as are there.
const GONE_KEYS_MIN: usize = 100_000;

/// What is remembered of the rows of a file.
#[derive(Debug)]
pub(crate) struct Directory {
    known: RwLock<KnownRows>,
    /// Keys of older rows, of which only this is known.
    older: BloomFilter,
}

#[derive(Debug)]
struct KnownRows {
    map: KeyMap,
    /// No row up to this one is missing that was there when it was added, or came later.
    newest: i64,
}

/// Where an operation may be.
pub(crate) struct Candidates {
    /// Rows to look at.
    pub(crate) rows: Vec<i64>,
    /// Whether it may be in an older row than those.
    pub(crate) maybe_older: bool,
}

impl Directory {
    /// Loads what a snapshot has, the newest so many keys with their rows.
    pub(crate) fn load(connection: &Connection, keys_max: usize) -> rusqlite::Result<Self> {
        let session = &mut &*connection;
        let runs = log::ready(log::live_runs(session))?;
        let covered = runs.last().map_or(0, |run| run.last_row);
        let tail = log::ready(log::whole_tail(session, covered))?;
        let mut room = i64::try_from(keys_max.saturating_sub(tail.len())).unwrap_or(i64::MAX);
        let (mut with_rows, mut without) = (tail.len(), 0);
        let mut since = covered + 1;
        for run in runs.iter().rev() {
            let (entries, kept) = (run.entries, run.entries.min(room));
            if kept > 0 {
                since = run.row_before_last(kept);
            }
            room -= kept;
            with_rows += usize::try_from(kept).unwrap_or(0);
            without += usize::try_from(entries - kept).unwrap_or(0);
        }
        let mut map = KeyMap::with_room(with_rows);
        let mut older = BloomFilter::with_room(without);
        for run in &runs {
            for entries in run.shares() {
                for RunEntry { prefix, row } in log::ready(log::entries_of(session, run, entries))?
                {
                    if row >= since { map.insert(prefix, row) } else { older.insert(prefix) }
                }
            }
        }
        let newest = tail.last().map_or(covered, |entry| entry.row);
        tail.iter().for_each(|entry| map.insert(entry.prefix, entry.row));
        Ok(Self { known: RwLock::new(KnownRows { map, newest }), older })
    }

    /// The newest row that is known.
    pub(crate) fn newest(&self) -> i64 {
        self.read().newest
    }

    /// Adds rows that are committed, among them all that are newer than those known.
    pub(crate) fn add(&self, rows: impl IntoIterator<Item = RunEntry>) {
        let mut known = self.write();
        for RunEntry { prefix, row } in rows {
            known.map.insert(prefix, row);
            known.newest = known.newest.max(row);
        }
    }

    /// Adds the rows of a snapshot that are newer than `seen`, which was the newest before it was taken.
    pub(crate) fn catch_up(&self, snapshot: &Connection, seen: i64) -> rusqlite::Result<()> {
        let mut seen = seen;
        loop {
            let rows = log::ready(log::tail(&mut &*snapshot, seen))?;
            let Some(last) = rows.last() else { return Ok(()) };
            seen = last.row;
            self.add(rows);
        }
    }

    /// Where an operation may be.
    pub(crate) fn candidates(&self, id: OperationId) -> Candidates {
        let prefix = log::prefix(id);
        let known = self.read();
        let rows = known.map.rows(prefix, known.newest);
        Candidates { rows, maybe_older: self.older.may_have(prefix) }
    }

    /// Whether it holds more than it should, in a file of so many keys.
    pub(crate) fn is_overgrown(&self, keys_max: usize, keys: usize) -> bool {
        let with_rows = self.read().map.len();
        let surplus = keys_max / 4;
        with_rows > keys_max + surplus || with_rows + self.older.len() > keys * 2 + GONE_KEYS_MIN
    }

    fn read(&self) -> RwLockReadGuard<'_, KnownRows> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, KnownRows> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The directory in use, which may be replaced. Clones share it.
///
/// Whoever looks something up in a snapshot asks for it before the snapshot is taken: then it knows
/// whatever the snapshot may still have.
#[derive(Debug, Clone)]
pub(crate) struct SharedDirectory(Arc<RwLock<Arc<Directory>>>);

impl SharedDirectory {
    pub(crate) fn new(directory: Directory) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(directory))))
    }

    pub(crate) fn current(&self) -> Arc<Directory> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, directory: Directory) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(directory);
    }
}
