//! Work, and how it is done with others in one transaction.

use std::sync::atomic::Ordering::Relaxed;

use hapax_core::limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX};
use hapax_encryption::FileKey;
use hapax_sqlite_file::{FileWriter, GroupSize, GroupWrite, TransactError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    connect::Database, error::JournalError, options::JournalOptions, place::WRITE, time::Moment,
};

/// What work is done on: an open transaction, at one moment.
pub(super) struct JournalTransaction<'a> {
    pub(super) connection: &'a Connection,
    /// What rows are sealed with.
    pub(super) key: Option<&'a FileKey>,
    pub(super) now: Moment,
    pub(super) options: &'a JournalOptions,
}

/// What an item of work came to. The outer error is the database's, and ends the whole transaction;
/// the inner one is the item's own.
pub(super) type Worked<T> = rusqlite::Result<Result<T, JournalError>>;

/// Something to be done in a transaction.
pub(super) trait JournalWork: Send + 'static {
    type Answer: Send + 'static;

    /// Where a test makes it fail; `None` for work that only reads.
    const PLACE: Option<&'static str>;

    /// How many bytes it writes, roughly.
    fn bytes(&self) -> usize {
        0
    }

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<Self::Answer>;
}

/// Work of any kind, with somebody who waits for the answer.
pub(super) trait QueuedWork: Send {
    fn place(&self) -> Option<&'static str>;
    fn bytes(&self) -> usize;
    fn work(&mut self, page: &JournalTransaction<'_>) -> rusqlite::Result<()>;
    /// Tells what it came to, once it is known whether the transaction is.
    fn answer(self: Box<Self>, committed: Result<(), TransactError>);
}

/// Work, what it came to, and who waits for it.
struct AwaitedWork<W: JournalWork> {
    work: W,
    done: Option<Result<W::Answer, JournalError>>,
    reply: Reply<W::Answer>,
}

/// Who waits for the answer to work.
pub(super) type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

pub(super) fn job<W: JournalWork>(work: W, reply: Reply<W::Answer>) -> Box<dyn QueuedWork> {
    Box::new(AwaitedWork { work, done: None, reply })
}

impl<W: JournalWork> QueuedWork for AwaitedWork<W> {
    fn place(&self) -> Option<&'static str> {
        W::PLACE
    }

    fn bytes(&self) -> usize {
        self.work.bytes()
    }

    fn work(&mut self, page: &JournalTransaction<'_>) -> rusqlite::Result<()> {
        self.done = Some(self.work.work(page)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), TransactError>) {
        let answer = match (committed, self.done) {
            (Ok(()), Some(done)) => Some(done),
            (Ok(()), None) => None,
            (Err(error), _) => Some(Err(error.into())),
        };
        if let Some(answer) = answer {
            // Whoever asked may have left.
            let _ = self.reply.send(answer);
        }
    }
}

impl GroupWrite<Database> for Box<dyn QueuedWork> {
    const FULL: GroupSize = GroupSize { writes: BATCH_WRITES_MAX, bytes: BATCH_BYTES_MAX };

    fn size(&self) -> GroupSize {
        GroupSize { writes: 1, bytes: self.bytes() }
    }

    /// Performs all jobs in one transaction, and answers each when that is on disk.
    fn perform(mut jobs: Vec<Self>, writer: &mut FileWriter<Database>) {
        let writes = jobs.iter().any(|job| job.place().is_some());
        let work = |database: &Database, connection: &Connection| {
            let options = &database.options;
            let (key, now) = (database.key.as_ref(), options.clock.now());
            let page = JournalTransaction { connection, key, now, options };
            for job in &mut jobs {
                if let Some(place) = job.place() {
                    options.faults.at(place).map_err(TransactError::unavailable)?;
                }
                job.work(&page)?;
            }
            Ok(())
        };
        let committed = if writes { writer.write(&WRITE, work) } else { writer.read(work) };
        if writes && committed.is_ok() {
            writer.database().commits.fetch_add(1, Relaxed);
        }
        for job in jobs {
            job.answer(committed.clone());
        }
    }
}
