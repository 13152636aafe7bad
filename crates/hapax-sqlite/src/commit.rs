//! What batches do inside the writer's transaction.
//!
//! The write lock is held, so what is read stays true until it is written: the rules themselves
//! are `hapax_core::apply`. Only the two writes of an undisturbed operation, its first claim and
//! its end, have a shorter way here, and whatever those two do not cover goes by the rules. A row
//! that cannot be read fails its own item and is never written over.

use std::collections::HashMap;

use hapax_core::{
    Attempt, OperationId, StoreError, Timestamp, apply,
    codec::{self, Row},
    store::{By, Claim, Over, Settle, Settlement, Write, Written},
};
use rusqlite::Connection;

use crate::{
    directory::Directory,
    hot_path::{HotStatements, RunningClaim},
    log::{self, RunEntry},
    ranges,
    row::{self, NumberedRow},
    steps,
};

/// Removes the first claim of a key that nobody uses.
pub(crate) fn withdraw(
    connection: &Connection,
    now: Timestamp,
    attempt: &Attempt,
) -> rusqlite::Result<bool> {
    let Some(Ok(NumberedRow { number, row })) = row::find(connection, None, attempt.id)? else {
        return Ok(false);
    };
    let record = row.open(now).ok();
    if !apply::withdraws(record.as_ref(), attempt) {
        return Ok(false);
    }
    log::ready(log::remove(&mut &*connection, number))
}

/// The transaction in which batches are performed.
pub(crate) struct LogTransaction<'c> {
    connection: &'c Connection,
    directory: &'c Directory,
    hot: HotStatements<'c>,
    /// The newest row when it began, and now.
    before: i64,
    newest: i64,
    /// The rows it has appended.
    appended: HashMap<OperationId, i64>,
    /// When a purge has to look at them.
    dues: Vec<(i64, i64)>,
}

impl<'c> LogTransaction<'c> {
    /// In a transaction that has the write lock and has written nothing yet.
    pub(crate) fn begin(
        connection: &'c Connection,
        directory: &'c Directory,
    ) -> rusqlite::Result<Self> {
        let newest = log::ready(log::newest_row(&mut &*connection))?;
        let seen = directory.newest();
        if newest > seen {
            directory.catch_up(connection, seen)?;
        }
        Ok(Self {
            connection,
            directory,
            hot: HotStatements::on(connection)?,
            before: newest,
            newest,
            appended: HashMap::new(),
            dues: Vec::new(),
        })
    }

    /// Performs a batch. An error is the database's, and ends the whole transaction.
    pub(crate) fn perform(
        &mut self,
        now: Timestamp,
        batch: &[Write],
    ) -> rusqlite::Result<Vec<Result<Written, StoreError>>> {
        batch.iter().map(|write| self.perform_one(now, write)).collect()
    }

    /// Looks after what is kept about the rows; what the directory is to be told once they are
    /// committed.
    pub(crate) fn finish(self) -> rusqlite::Result<Vec<RunEntry>> {
        let session = &mut &*self.connection;
        for (range, due) in self.dues {
            self.connection.prepare_cached(ranges::LOWER)?.execute([range, due])?;
        }
        log::ready(log::index_rows(session, (self.before, self.newest)))?;
        let entry = |(id, row)| RunEntry { prefix: log::prefix(id), row };
        Ok(self.appended.into_iter().map(entry).collect())
    }

    fn perform_one(
        &mut self,
        now: Timestamp,
        write: &Write,
    ) -> rusqlite::Result<Result<Written, StoreError>> {
        let rows = self.rows_of(write.id())?;
        let is_done = match write {
            Write::Claim(claim) => rows.is_empty() && self.claim_first(now, claim)?,
            Write::Settle(settle) => self.finish_running(now, &rows, settle)?,
            Write::Renew(_) => false,
            Write::Step(keep) => steps::keep(self.connection, now, &rows, keep)?,
        };
        if is_done {
            return Ok(Ok(Written::Done { now }));
        }
        self.by_the_rules(now, &rows, write)
    }

    /// The rows that may have this id: one of them does, or none.
    fn rows_of(&self, id: OperationId) -> rusqlite::Result<Vec<i64>> {
        if let Some(row) = self.appended.get(&id) {
            return Ok(vec![*row]);
        }
        let mut candidates = self.directory.candidates(id);
        if candidates.maybe_older {
            candidates.rows.extend(log::ready(log::in_runs(&mut &*self.connection, id))?);
        }
        Ok(candidates.rows)
    }

    /// Most claims are the first of their key: those are appended.
    fn claim_first(&mut self, now: Timestamp, claim: &Claim) -> rusqlite::Result<bool> {
        let Some(record) = apply::claim(now, None, claim) else { return Ok(false) };
        let row = Row::seal(&record);
        let number = self.next_row(&row);
        self.hot.claim(number, &row)?;
        Ok(true)
    }

    /// Most settles end what still runs under their fence and owner: those are tried first.
    fn finish_running(
        &mut self,
        now: Timestamp,
        rows: &[i64],
        settle: &Settle,
    ) -> rusqlite::Result<bool> {
        let id = settle.id;
        let is_usual = settle.to.tag().is_terminal() && settle.to != Settlement::Declined;
        let (By::Owner { fence, owner }, true) = (settle.by, is_usual) else { return Ok(false) };
        let attempt = Attempt { id, fence, owner };
        for row in rows {
            let Some(claim) = self.hot.running(*row, &attempt)? else { continue };
            let outcome = settle.to.outcome().map(|outcome| codec::seal(id, outcome));
            let RunningClaim { expires_at, .. } = claim;
            let end = (settle.to.tag(), expires_at.max(now.plus(settle.keep)), outcome.as_ref());
            if expires_at <= now {
                // A purge may have passed it by because it was running.
                self.lower_due(*row, end.1.as_micros());
            }
            return self.hot.end(now, *row, &claim, end);
        }
        Ok(false)
    }

    /// Changes the row as the rules say. It never makes the first of a key: a write that finds nothing
    /// has nothing to say, except a first claim, which was appended before.
    fn by_the_rules(
        &mut self,
        now: Timestamp,
        rows: &[i64],
        write: &Write,
    ) -> rusqlite::Result<Result<Written, StoreError>> {
        let mut found = None;
        for row in rows {
            found = row::find_at(self.connection, *row, write.id())?;
            if found.is_some() {
                break;
            }
        }
        let Some(found) = found else {
            if let Write::Claim(claim) = write
                && self.claim_first(now, claim)?
            {
                return Ok(Ok(Written::Done { now }));
            }
            return Ok(Ok(Written::Refused { now, record: None }));
        };
        let opened = found.and_then(|NumberedRow { number, row }| Ok((number, row.open(now)?)));
        let (number, record) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let changed = match write {
            Write::Claim(_) | Write::Settle(_) | Write::Renew(_) => {
                apply::write(now, Some(&record), write)
            }
            // It is kept beside the row, or not at all.
            Write::Step(_) => None,
        };
        let Some(changed) = changed else {
            return Ok(Ok(Written::Refused { now, record: Some(Box::new(record)) }));
        };
        let changed = Row::seal(&changed);
        if let Write::Claim(Claim { over: Over::Spent(_), .. }) = write {
            self.begin_anew(number, &changed)?;
        } else {
            log::ready(log::rewrite(&mut &*self.connection, number, &changed))?;
        }
        Ok(Ok(Written::Done { now }))
    }

    /// A new life is a new row, so that rows stay in the order of time.
    fn begin_anew(&mut self, number: i64, row: &Row) -> rusqlite::Result<()> {
        let session = &mut &*self.connection;
        log::ready(log::remove(session, number))?;
        steps::forget(self.connection, row.id)?;
        let number = self.next_row(row);
        log::ready(log::append_at(session, number, row))
    }

    fn next_row(&mut self, row: &Row) -> i64 {
        self.newest = row::number_after(self.newest);
        self.appended.insert(row.id, self.newest);
        self.lower_due(self.newest, row.expires_at);
        self.newest
    }

    fn lower_due(&mut self, row: i64, due: i64) {
        let range = ranges::of(row);
        match self.dues.iter_mut().find(|(of, _)| *of == range) {
            Some((_, lowest)) => *lowest = due.min(*lowest),
            None => self.dues.push((range, due)),
        }
    }
}
