//! The threads that read.
//!
//! Each has a connection of its own and reads a snapshot taken after it was asked, so readers
//! never wait for the writer, nor the writer for them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use hapax_core::{
    Noted, OperationId, Record, StateTag, StoreError, StoredStep, Timestamp, apply,
    limits::{LEASE_MAX, PAGE_RECORDS_MAX},
    store::{Filter, Listed, Loaded, Page},
};
use hapax_sqlite_file::Connect as _;
use rusqlite::{Connection, Transaction, named_params};
use tokio::sync::mpsc;

use crate::{
    connect::Database,
    error::{nothing_written, store_error},
    notes,
    row::{self, NumberedRow, columns},
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
        let found: Vec<_> =
            self.snapshot(|snapshot| ids.iter().map(|id| row::find(snapshot, *id)).collect())?;
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
        self.snapshot(|snapshot| steps::of(snapshot, id))?
    }

    /// The longest overdue first. Rows that cannot be read are left for whoever loads them.
    pub(crate) fn overdue(&mut self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.database.options.faults.at(place::OVERDUE).map_err(StoreError::unavailable)?;
        let (now, limit) = (self.now(), limit.min(PAGE_RECORDS_MAX));
        self.snapshot(|snapshot| {
            let mut statement = snapshot.prepare_cached(concat!(
                "SELECT ",
                columns!(),
                " FROM hapax_operations INDEXED BY hapax_operations_in_flight
                 WHERE state IN (1, 2) AND (until <= ?1 OR until > ?2) ORDER BY until"
            ))?;
            let no_lease_ends_after = now.plus(LEASE_MAX).as_micros();
            let mut rows = statement.query([now.as_micros(), no_lease_ends_after])?;
            let mut overdue = Vec::new();
            while overdue.len() < limit
                && let Some(found) = rows.next()?
            {
                let Ok(NumberedRow { row, .. }) = row::read(found) else { continue };
                overdue.extend(row.open(now).ok().filter(|record| apply::is_overdue(now, record)));
            }
            Ok(overdue)
        })
    }

    pub(crate) fn list(&mut self, filter: &Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        let sql = format!(
            concat!(
                "SELECT ",
                columns!(),
                " FROM hapax_operations INDEXED BY {} AND id > :after
                 AND (:tenant IS NULL OR tenant = :tenant) AND (:scope IS NULL OR scope = :scope)
                 ORDER BY id LIMIT :limit"
            ),
            rows_in(filter.state),
        );
        let limit = page.limit.min(PAGE_RECORDS_MAX);
        let rows: Vec<_> = self.snapshot(|snapshot| {
            let mut statement = snapshot.prepare_cached(&sql)?;
            let params = named_params! {
                ":after": page.after.as_ref().map_or(&[][..], |id| &id.as_bytes()[..]),
                ":tenant": filter.tenant.as_ref().map(hapax_core::Tenant::as_str),
                ":scope": filter.scope.as_ref().map(hapax_core::Scope::as_str),
                ":limit": i64::try_from(limit).unwrap_or(i64::MAX),
            };
            let read = |found: &rusqlite::Row<'_>| Ok((found.get(1)?, row::read(found)));
            statement.query_map(params, read)?.collect()
        })?;
        let listed =
            rows.into_iter().map(|(id, stored): (_, Result<NumberedRow, StoreError>)| Listed {
                id: OperationId::from_bytes(id),
                summary: stored.and_then(|stored| Ok(stored.row.summary()?)),
            });
        Ok(listed.collect())
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

/// The smallest index that holds every row in this state, and how to ask it.
///
/// Numbers are spelled out and a partial index's own condition is repeated, because SQLite uses
/// such an index only where it recognises that.
fn rows_in(state: Option<StateTag>) -> &'static str {
    match state {
        None => "hapax_operations_id WHERE true",
        Some(StateTag::Pending) => "hapax_operations_in_flight WHERE state IN (1, 2) AND state = 1",
        Some(StateTag::Running) => "hapax_operations_in_flight WHERE state IN (1, 2) AND state = 2",
        Some(StateTag::Completed) => "hapax_operations_id WHERE state = 3",
        Some(StateTag::Failed) => "hapax_operations_id WHERE state = 4",
        Some(StateTag::InDoubt) => "hapax_operations_in_doubt WHERE state = 5",
        Some(StateTag::Released) => "hapax_operations_id WHERE state = 6",
        Some(StateTag::Buried) => "hapax_operations_id WHERE state = 7",
    }
}
