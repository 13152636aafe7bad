//! The one thread that writes.
//!
//! It takes everything that is queued, performs it in one transaction and answers when that is on
//! disk: the more callers there are, the more of them share one sync.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hapax_core::{
    Note, StoreError, Timestamp,
    clock::ClockMark,
    limits::BATCH_BYTES_MAX,
    store::{Batch, Claim, Committed, KeepStep, Purged, Settle},
};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::{
    clock_mark, commit,
    connect::Database,
    errand::Errand,
    error::{Panicked, commit_failed, nothing_written},
    notes, retire,
};

/// Batches that may wait for the writer; beyond them callers wait to hand theirs over.
pub(crate) const QUEUE_BATCHES_MAX: usize = 1024;
/// Writes after which a round takes no further batch.
const ROUND_WRITES: usize = 4096;

/// What the writer can be asked for.
#[derive(Debug)]
pub(crate) enum Job {
    Commit { batch: Batch, reply: oneshot::Sender<Committed> },
    Purge { limit: usize, reply: oneshot::Sender<Result<Purged, StoreError>> },
    KeepClock { mark: ClockMark, reply: oneshot::Sender<Result<(), StoreError>> },
    Note { note: Note, reply: oneshot::Sender<Result<(), StoreError>> },
    Other(Errand<Writer>),
}

/// Where the writer may be made to fail.
pub(crate) mod place {
    pub(crate) const COMMIT_BEFORE_BEGIN: &str = "sqlite.commit.before_begin";
    pub(crate) const COMMIT_AFTER_BEGIN: &str = "sqlite.commit.after_begin";
    pub(crate) const COMMIT_BEFORE_COMMIT: &str = "sqlite.commit.before_commit";
    pub(crate) const COMMIT_AFTER_COMMIT: &str = "sqlite.commit.after_commit";
    pub(crate) const PURGE_BEFORE_BEGIN: &str = "sqlite.purge.before_begin";
    pub(crate) const PURGE_AFTER_BEGIN: &str = "sqlite.purge.after_begin";
    pub(crate) const PURGE_BEFORE_COMMIT: &str = "sqlite.purge.before_commit";
    pub(crate) const PURGE_AFTER_COMMIT: &str = "sqlite.purge.after_commit";
}

/// Performs jobs until nobody can send any more, then copies the log into the database and closes.
pub(crate) fn run(database: Database, connection: Connection, mut jobs: mpsc::Receiver<Job>) {
    let mut writer = Writer { database, connection: Some(connection) };
    let mut next = jobs.blocking_recv();
    while let Some(job) = next.take() {
        match job {
            Job::Commit { batch, reply } => {
                let mut round = Round::default();
                round.take(batch, reply);
                while !round.is_full() {
                    match jobs.try_recv() {
                        Ok(Job::Commit { batch, reply }) => round.take(batch, reply),
                        Ok(
                            other @ (Job::Purge { .. }
                            | Job::KeepClock { .. }
                            | Job::Note { .. }
                            | Job::Other(_)),
                        ) => {
                            next = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                writer.commit(round);
            }
            Job::Purge { limit, reply } => {
                let purge = |connection: &Connection, now| retire::purge(connection, now, limit);
                // Whoever asked may have left.
                let _ = reply.send(writer.transact(&PURGE, purge));
            }
            Job::KeepClock { mark, reply } => {
                let keep = |connection: &Connection, _| clock_mark::keep(connection, mark);
                let _ = reply.send(writer.transact(&KEEP_CLOCK, keep));
            }
            Job::Note { note, reply } => {
                let keep = |connection: &Connection, now| notes::keep(connection, now, &note);
                let _ = reply.send(writer.transact(&COMMIT, keep));
            }
            Job::Other(errand) => errand.run(&mut writer),
        }
        next = next.or_else(|| jobs.blocking_recv());
    }
    writer.close();
}

/// Batches that are committed together.
#[derive(Default)]
struct Round {
    batches: Vec<(Batch, oneshot::Sender<Committed>)>,
    writes: usize,
    bytes: usize,
}

impl Round {
    fn take(&mut self, batch: Batch, reply: oneshot::Sender<Committed>) {
        self.writes += batch.len();
        self.bytes += bytes(&batch);
        self.batches.push((batch, reply));
    }

    fn is_full(&self) -> bool {
        self.writes >= ROUND_WRITES || self.bytes >= BATCH_BYTES_MAX
    }
}

fn bytes(batch: &Batch) -> usize {
    let claims = batch.claims.iter().map(Claim::weight);
    let settles = batch.settles.iter().map(Settle::weight);
    claims.chain(settles).chain(batch.steps.iter().map(KeepStep::weight)).sum()
}

/// The places one kind of transaction passes.
struct Places {
    before_begin: &'static str,
    after_begin: &'static str,
    before_commit: &'static str,
    after_commit: &'static str,
}

const COMMIT: Places = Places {
    before_begin: place::COMMIT_BEFORE_BEGIN,
    after_begin: place::COMMIT_AFTER_BEGIN,
    before_commit: place::COMMIT_BEFORE_COMMIT,
    after_commit: place::COMMIT_AFTER_COMMIT,
};

const PURGE: Places = Places {
    before_begin: place::PURGE_BEFORE_BEGIN,
    after_begin: place::PURGE_AFTER_BEGIN,
    before_commit: place::PURGE_BEFORE_COMMIT,
    after_commit: place::PURGE_AFTER_COMMIT,
};

/// Not among [`PLACES`](crate::PLACES): it is no caller's write, and comes at any time.
const KEEP_CLOCK: Places = Places {
    before_begin: "sqlite.keep_clock.before_begin",
    after_begin: "sqlite.keep_clock.after_begin",
    before_commit: "sqlite.keep_clock.before_commit",
    after_commit: "sqlite.keep_clock.after_commit",
};

pub(crate) struct Writer {
    database: Database,
    /// `None` after a failure that may have left it unusable; opened anew when needed.
    connection: Option<Connection>,
}

impl Writer {
    fn commit(&mut self, round: Round) {
        let answers = self.transact(&COMMIT, |connection, now| {
            let batches = round.batches.iter();
            batches.map(|(batch, _)| commit::perform(connection, now, batch)).collect()
        });
        match answers {
            Ok(answers) => {
                let answers: Vec<Committed> = answers;
                for ((_, reply), committed) in round.batches.into_iter().zip(answers) {
                    // Whoever asked may have left.
                    let _ = reply.send(committed);
                }
            }
            Err(error) => {
                for (batch, reply) in round.batches {
                    let _ = reply.send(batch.all_failed(&error));
                }
            }
        }
    }

    /// Runs `work` in a transaction of its own, which passes the places of a commit.
    pub(crate) fn change<T>(
        &mut self,
        work: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.transact(&COMMIT, work)
    }

    /// Runs `work` in a transaction of its own. Whatever goes wrong, the answer says whether
    /// anything may have been written, and the next transaction starts clean.
    fn transact<T>(
        &mut self,
        places: &Places,
        work: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.database.writer().map_err(StoreError::unavailable)?,
        };
        let mut committing = false;
        let attempt =
            AssertUnwindSafe(|| self.attempt(&mut connection, places, &mut committing, work));
        let result = catch_unwind(attempt).unwrap_or_else(|payload| {
            let panicked = Panicked::new(payload.as_ref());
            Err(if committing {
                StoreError::unconfirmed(panicked)
            } else {
                StoreError::unavailable(panicked)
            })
        });
        if let Err(error) = &result {
            tracing::warn!(error = error as &dyn std::error::Error, "a transaction failed");
        }
        let clean = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        if clean && !matches!(result, Err(StoreError::Unconfirmed(_))) {
            self.connection = Some(connection);
        }
        result
    }

    fn attempt<T>(
        &self,
        connection: &mut Connection,
        places: &Places,
        committing: &mut bool,
        work: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let options = &self.database.options;
        options.faults.at(places.before_begin).map_err(StoreError::unavailable)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(nothing_written)?;
        self.database.still_there()?;
        options.faults.at(places.after_begin).map_err(StoreError::unavailable)?;
        let done = work(&transaction, options.clock.now()).map_err(nothing_written)?;
        options.faults.at(places.before_commit).map_err(StoreError::unavailable)?;
        *committing = true;
        transaction.commit().map_err(commit_failed)?;
        options.faults.at(places.after_commit).map_err(StoreError::unconfirmed)?;
        Ok(done)
    }

    /// Leaves one file behind, where no other process has it open.
    fn close(self) {
        let Some(connection) = self.connection else { return };
        let checkpoint = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = checkpoint.and_then(|()| connection.close().map_err(|(_, error)| error))
        {
            tracing::warn!(%error, "the log was not copied into the database; it will be next time");
        }
    }
}
