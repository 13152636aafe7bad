//! The file, and the one way anything is written to it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::{
    connect::Database,
    error::{JournalError, OpenError, commit_failed, nothing_written},
    options::JournalOptions,
    place,
    time::Moment,
};

/// A file and a connection to it.
#[derive(Debug)]
pub(super) struct Book {
    database: Database,
    /// `None` after a failure that may have left it unusable; opened anew when needed.
    connection: Option<Connection>,
    commits: Arc<AtomicU64>,
}

/// What work is done on: an open transaction, at one moment.
pub(super) struct Page<'a> {
    pub(super) connection: &'a Connection,
    pub(super) now: Moment,
    pub(super) options: &'a JournalOptions,
}

/// What an item of work came to. The outer error is the database's, and ends the whole transaction;
/// the inner one is the item's own.
pub(super) type Worked<T> = rusqlite::Result<Result<T, JournalError>>;

/// Something to be done in a transaction.
pub(super) trait Work: Send + 'static {
    type Answer: Send + 'static;

    /// Where a test makes it fail; `None` for work that only reads.
    const PLACE: Option<&'static str>;

    /// How many bytes it writes, roughly.
    fn bytes(&self) -> usize {
        0
    }

    fn work(&self, page: &Page<'_>) -> Worked<Self::Answer>;
}

/// Work of any kind, with somebody who waits for the answer.
pub(super) trait Job: Send {
    fn place(&self) -> Option<&'static str>;
    fn bytes(&self) -> usize;
    fn work(&mut self, page: &Page<'_>) -> rusqlite::Result<()>;
    /// Tells what it came to, once it is known whether the transaction is.
    fn answer(self: Box<Self>, committed: Result<(), JournalError>);
}

/// Work, what it came to, and who waits for it.
struct Asked<W: Work> {
    work: W,
    done: Option<Result<W::Answer, JournalError>>,
    reply: oneshot::Sender<Result<W::Answer, JournalError>>,
}

/// What the one who asked waits on.
pub(super) type Reply<T> = oneshot::Receiver<Result<T, JournalError>>;

pub(super) fn job<W: Work>(work: W) -> (Box<dyn Job>, Reply<W::Answer>) {
    let (reply, answer) = oneshot::channel();
    (Box::new(Asked { work, done: None, reply }), answer)
}

impl<W: Work> Job for Asked<W> {
    fn place(&self) -> Option<&'static str> {
        W::PLACE
    }

    fn bytes(&self) -> usize {
        self.work.bytes()
    }

    fn work(&mut self, page: &Page<'_>) -> rusqlite::Result<()> {
        self.done = Some(self.work.work(page)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), JournalError>) {
        let answer = match (committed, self.done) {
            (Ok(()), Some(done)) => Some(done),
            (Ok(()), None) => None,
            (Err(error), _) => Some(Err(error)),
        };
        if let Some(answer) = answer {
            // Whoever asked may have left.
            let _ = self.reply.send(answer);
        }
    }
}

impl Book {
    pub(super) fn open(mut database: Database) -> Result<Self, OpenError> {
        let connection = database.connect()?;
        Ok(Self { database, connection: Some(connection), commits: Arc::default() })
    }

    pub(super) fn options(&self) -> &JournalOptions {
        &self.database.options
    }

    /// Transactions that were committed and may have written something.
    pub(super) fn commits(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.commits)
    }

    /// Performs all jobs in one transaction, and answers each when that is on disk. Whatever goes
    /// wrong, the answer says whether anything may have been written, and the next transaction
    /// starts clean.
    pub(super) fn perform(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let committed = self.transact(&mut jobs);
        if let Err(error) = &committed {
            tracing::warn!(error = error as &dyn std::error::Error, "a journal's write failed");
        }
        for job in jobs {
            job.answer(committed.clone());
        }
    }

    fn transact(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), JournalError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.database.connect().map_err(JournalError::unavailable)?,
        };
        let writes = jobs.iter().any(|job| job.place().is_some());
        let result = if writes {
            self.write(&mut connection, jobs)
        } else {
            self.read(&mut connection, jobs)
        };
        if writes && result.is_ok() {
            self.commits.fetch_add(1, Relaxed);
        }
        let clean = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        if clean && !matches!(result, Err(JournalError::Unconfirmed(_))) {
            self.connection = Some(connection);
        }
        result
    }

    fn write(
        &self,
        connection: &mut Connection,
        jobs: &mut [Box<dyn Job>],
    ) -> Result<(), JournalError> {
        let faults = &self.database.options.faults;
        faults.at(place::WRITE_BEFORE_BEGIN).map_err(JournalError::unavailable)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(nothing_written)?;
        self.database.still_there()?;
        faults.at(place::WRITE_AFTER_BEGIN).map_err(JournalError::unavailable)?;
        let page = self.page(&transaction);
        for job in jobs {
            if let Some(place) = job.place() {
                faults.at(place).map_err(JournalError::unavailable)?;
            }
            job.work(&page).map_err(nothing_written)?;
        }
        faults.at(place::WRITE_BEFORE_COMMIT).map_err(JournalError::unavailable)?;
        transaction.commit().map_err(commit_failed)?;
        faults.at(place::WRITE_AFTER_COMMIT).map_err(JournalError::unconfirmed)
    }

    fn read(
        &self,
        connection: &mut Connection,
        jobs: &mut [Box<dyn Job>],
    ) -> Result<(), JournalError> {
        let transaction = connection.transaction().map_err(nothing_written)?;
        let page = self.page(&transaction);
        for job in jobs {
            job.work(&page).map_err(nothing_written)?;
        }
        transaction.commit().map_err(nothing_written)
    }

    fn page<'a>(&'a self, connection: &'a Connection) -> Page<'a> {
        let options = &self.database.options;
        Page { connection, now: options.clock.now(), options }
    }

    /// Leaves one file behind, where no other process has it open.
    pub(super) fn close(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let checkpoint = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = checkpoint.and_then(|()| connection.close().map_err(|(_, error)| error))
        {
            tracing::warn!(%error, "the log was not copied into the journal; it will be next time");
        }
    }
}
