//! The threads that read.
//!
//! Each has a connection of its own and reads a snapshot taken after it was asked, so readers
//! never wait for the writer, nor the writer for them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use hapax_core::{
    Noted, OperationId, Record, StoreError, StoredStep, Timestamp, apply,
    limits::{LEASE_MAX, PAGE_RECORDS_MAX},
    store::{Filter, Listed, Loaded, Page},
};
use hapax_sqlite_file::Connect as _;
use rusqlite::{Connection, Transaction};
use tokio::sync::mpsc;

use crate::{
    connect::Database,
    directory::Directory,
    error::{nothing_written, store_error},
    listing, notes,
    row::{self, NumberedRow, columns, open_tables},
    session::KindRow,
    steps,
};

/// Reads that may wait; beyond them callers wait to hand theirs over.
pub(crate) const QUEUE_READS_MAX: usize = 1024;

/// What a reader is asked for. A reply that is dropped means that nothing was read.
pub(crate) type Job = Box<dyn FnOnce(&mut ReadSession) + Send>;

/// Where a reader may be made to fail.
pub(crate) mod place {
    pub(crate) const LOAD: &str = "sqlite.load";
    pub(crate) const STEPS: &str = "sqlite.steps";
    pub(crate) const OVERDUE: &str = "sqlite.overdue";
}

/// Performs jobs, which all readers take from the same queue, until nobody can send any more.
pub(crate) fn run(database: Database, jobs: &Arc<Mutex<mpsc::Receiver<Job>>>) {
    let mut reader = ReadSession { database, connection: None };
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
    while let Some(job) = next() {
        if catch_unwind(AssertUnwindSafe(|| job(&mut reader))).is_err() {
            reader.connection = None;
        }
    }
}

pub(crate) struct ReadSession {
    database: Database,
    /// `None` before the first read and after a failed one; opened when needed.
    connection: Option<Connection>,
}

impl ReadSession {
    pub(crate) fn load(
        &mut self,
        ids: &[OperationId],
    ) -> Result<Vec<Result<Loaded, StoreError>>, StoreError> {
        self.database.options.faults.at(place::LOAD).map_err(StoreError::unavailable)?;
        let found: Vec<_> = self.known_snapshot(|snapshot, directory| {
            ids.iter().map(|id| row::find(snapshot, directory, *id)).collect()
        })?;
        let now = self.now();
        let open = |stored: NumberedRow| Ok(Box::new(stored.row.open(now)?));
        let loaded = found.into_iter().map(|found| {
            let record = found.map(|row| row.and_then(open)).transpose()?;
            Ok(Loaded { now, record })
        });
        Ok(loaded.collect())
    }

    pub(crate) fn steps(&mut self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.database.options.faults.at(place::STEPS).map_err(StoreError::unavailable)?;
        self.known_snapshot(|snapshot, directory| {
            let Some(found) = row::find(snapshot, directory, id)? else {
                return Ok(Ok(Vec::new()));
            };
            match found {
                Ok(NumberedRow { row, .. }) => steps::of(snapshot, id, row.created_at),
                Err(error) => Ok(Err(error)),
            }
        })?
    }

    /// The longest overdue first. Rows that cannot be read are left for whoever loads them.
    pub(crate) fn overdue(&mut self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.database.options.faults.at(place::OVERDUE).map_err(StoreError::unavailable)?;
        let (now, limit) = (self.now(), limit.min(PAGE_RECORDS_MAX));
        self.snapshot(|snapshot| {
            let mut statement = snapshot.prepare_cached(concat!(
                "SELECT ",
                columns!(),
                open_tables!(),
                "WHERE o.state IN (1, 2) AND (o.until <= ?1 OR o.until > ?2) ORDER BY o.until"
            ))?;
            let no_lease_ends_after = now.plus(LEASE_MAX).as_micros();
            let mut rows = statement.query([now.as_micros(), no_lease_ends_after])?;
            let mut overdue = Vec::new();
            while overdue.len() < limit
                && let Some(found) = rows.next()?
            {
                let Ok(NumberedRow { row, .. }) = row::read(&KindRow(found)) else { continue };
                overdue.extend(row.open(now).ok().filter(|record| apply::is_overdue(now, record)));
            }
            Ok(overdue)
        })
    }

    pub(crate) fn list(&mut self, filter: &Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.snapshot(|snapshot| listing::list(snapshot, filter, page))
    }

    /// Sees to it that what is remembered of the file is not too much.
    pub(crate) fn remember_less(&mut self) -> Result<(), StoreError> {
        let database = self.database.clone();
        self.snapshot(|snapshot| database.remember_less(snapshot))
    }

    pub(crate) fn notes(
        &mut self,
        id: OperationId,
        limit: usize,
    ) -> Result<Vec<Noted>, StoreError> {
        let notes =
            self.snapshot(|snapshot| notes::latest(snapshot, id, limit.min(PAGE_RECORDS_MAX)))?;
        notes.into_iter().collect()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.database.options.clock.now()
    }

    /// Reads one snapshot, taken now, all of whose rows the directory knows.
    fn known_snapshot<T>(
        &mut self,
        read: impl FnOnce(&Transaction<'_>, Option<&Directory>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let directory = self.database.directory();
        let seen = directory.as_ref().map(|directory| directory.newest());
        self.snapshot(|snapshot| {
            if let (Some(directory), Some(seen)) = (&directory, seen) {
                directory.catch_up(snapshot, seen)?;
            }
            read(snapshot, directory.as_deref())
        })
    }

    /// Reads one snapshot, taken now.
    pub(crate) fn snapshot<T>(
        &mut self,
        read: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.database.file().still_there().map_err(store_error)?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.database.reader().map_err(nothing_written)?,
        };
        let read = connection.transaction().and_then(|snapshot| read(&snapshot));
        let found = read.map_err(nothing_written)?;
        self.connection = Some(connection);
        Ok(found)
    }
}
