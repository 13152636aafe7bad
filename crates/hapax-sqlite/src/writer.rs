//! What the one thread that writes is asked for.

use hapax_core::{
    StoreError, Timestamp,
    limits::BATCH_BYTES_MAX,
    store::{Write, Written},
};
use hapax_sqlite_file::{FileWriter, GroupSize, GroupWrite, Places, TransactError, WriterJob};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{commit::LogTransaction, connect::Database, error::store_error};

/// Batches that may wait for the writer; beyond them callers wait to hand theirs over.
pub(crate) const QUEUE_BATCHES_MAX: usize = 1024;
/// Writes after which a group takes no further batch.
const GROUP_WRITES: usize = 4096;

/// What the writer can be asked for: batches, which share a transaction, or anything else by itself.
pub(crate) type Job = WriterJob<Commit, Database>;

/// A batch, and who waits for its answers.
pub(crate) struct Commit {
    pub(crate) batch: Vec<Write>,
    pub(crate) reply: oneshot::Sender<Vec<Result<Written, StoreError>>>,
}

impl GroupWrite<Database> for Commit {
    const FULL: GroupSize = GroupSize { writes: GROUP_WRITES, bytes: BATCH_BYTES_MAX };

    fn size(&self) -> GroupSize {
        let bytes = self.batch.iter().map(Write::weight).sum();
        GroupSize { writes: self.batch.len(), bytes }
    }

    fn perform(group: Vec<Self>, writer: &mut FileWriter<Database>) {
        let directory = writer.database().directory();
        let answers = writer.write(&COMMIT, |database, connection| {
            let now = database.options.clock.now();
            let directory = directory
                .as_deref()
                .ok_or_else(|| TransactError::unavailable("the file was opened to be read"))?;
            let mut transaction = LogTransaction::begin(connection, directory)?;
            let batches = group.iter();
            let answers = batches.map(|asked| transaction.perform(now, &asked.batch));
            let answers = answers.collect::<rusqlite::Result<Vec<_>>>()?;
            Ok((answers, transaction.finish()?))
        });
        match answers {
            Ok((answers, rows)) => {
                if let Some(directory) = directory {
                    directory.add(rows);
                }
                for (Self { reply, .. }, answers) in group.into_iter().zip(answers) {
                    // Whoever asked may have left.
                    let _ = reply.send(answers);
                }
            }
            Err(error) => {
                let error = store_error(error);
                for Self { batch, reply } in group {
                    let _ = reply.send(vec![Err(error.clone()); batch.len()]);
                }
            }
        }
    }
}

/// Work for a transaction of its own, which only its asker understands.
pub(crate) fn alone<T: Send + 'static, E: Into<TransactError>>(
    places: &'static Places,
    work: impl FnOnce(&Connection, Timestamp) -> Result<T, E> + Send + 'static,
    reply: oneshot::Sender<Result<T, StoreError>>,
) -> Job {
    WriterJob::Alone(Box::new(move |writer| {
        let done = writer.write(places, |database, connection| {
            work(connection, database.options.clock.now()).map_err(Into::into)
        });
        // Whoever asked may have left.
        let _ = reply.send(done.map_err(store_error));
    }))
}

/// Where the writer may be made to fail.
pub(crate) const COMMIT: Places = Places {
    before_begin: "sqlite.commit.before_begin",
    after_begin: "sqlite.commit.after_begin",
    before_commit: "sqlite.commit.before_commit",
    after_commit: "sqlite.commit.after_commit",
};

pub(crate) const PURGE: Places = Places {
    before_begin: "sqlite.purge.before_begin",
    after_begin: "sqlite.purge.after_begin",
    before_commit: "sqlite.purge.before_commit",
    after_commit: "sqlite.purge.after_commit",
};

/// Not among [`PLACES`](crate::PLACES), nor are those below: they are no caller's write, and come at any time.
pub(crate) const KEEP_CLOCK: Places = Places {
    before_begin: "sqlite.keep_clock.before_begin",
    after_begin: "sqlite.keep_clock.after_begin",
    before_commit: "sqlite.keep_clock.before_commit",
    after_commit: "sqlite.keep_clock.after_commit",
};

/// What the file keeps about its past.
pub(crate) const KEEP_PAST: Places = Places {
    before_begin: "sqlite.keep_past.before_begin",
    after_begin: "sqlite.keep_past.after_begin",
    before_commit: "sqlite.keep_past.before_commit",
    after_commit: "sqlite.keep_past.after_commit",
};

/// What is written beside the file, while its write lock is held.
pub(crate) const REMEMBER: Places = Places {
    before_begin: "sqlite.remember.before_begin",
    after_begin: "sqlite.remember.after_begin",
    before_commit: "sqlite.remember.before_commit",
    after_commit: "sqlite.remember.after_commit",
};
