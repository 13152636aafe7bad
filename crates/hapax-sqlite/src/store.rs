use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use hapax_core::{
    Attempt, Note, Noted, OperationId, Record, Salt, StoreError, StoredStep, Timestamp,
    clock::{ClockMark, ClockReading},
    outbox::Bell,
    store::{self, Batch, Committed, Filter, Listed, Loaded, Page, Purged},
};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    clock_mark, commit,
    connect::Database,
    errand::Errand,
    error::{OpenError, Stopped},
    migrate,
    migrate::salt_of,
    options::Options,
    reader,
    script::{VERSION, schema_version},
    writer,
};

/// Records in one SQLite file. Clones share it.
///
/// Any number of processes may open the same file. When the last clone is dropped, what is queued
/// is finished and the file is closed before the drop returns.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// The places of [`hapax_core::Faults`] a store passes on its way to and from the file.
pub const PLACES: &[&str] = &[
    writer::place::COMMIT_BEFORE_BEGIN,
    writer::place::COMMIT_AFTER_BEGIN,
    writer::place::COMMIT_BEFORE_COMMIT,
    writer::place::COMMIT_AFTER_COMMIT,
    writer::place::PURGE_BEFORE_BEGIN,
    writer::place::PURGE_AFTER_BEGIN,
    writer::place::PURGE_BEFORE_COMMIT,
    writer::place::PURGE_AFTER_COMMIT,
    reader::place::LOAD,
    reader::place::STEPS,
    reader::place::OVERDUE,
];

impl Store {
    /// Opens the file, creating or migrating it where needed. Blocks while it does.
    ///
    /// The file may hold your own tables too. It must then use write-ahead logging already
    /// (`PRAGMA journal_mode = WAL`, once): a file that holds something is never switched.
    pub fn open(path: impl Into<PathBuf>, options: Options) -> Result<Self, OpenError> {
        let mut database = Database::new(path.into(), options.within_bounds());
        let mut connection = database.writer()?;
        let migrated = migrate(&mut connection);
        let salt = migrated.map_err(|error| database.not_migrated(error))?;
        database.pin()?;
        Self::serve(database, salt, Some(connection))
    }

    /// Opens a file that is there, to read it: it is neither made nor migrated, and no right to write
    /// it is needed. Whatever would write is refused as unavailable.
    pub fn open_to_read(path: impl Into<PathBuf>, options: Options) -> Result<Self, OpenError> {
        let mut database = Database::to_read(path.into(), options.within_bounds());
        let connection = database.first_reader()?;
        let salt = salt_of(&connection).map_err(|error| database.not_migrated(error))?;
        let Some(salt) = salt else {
            let found =
                schema_version(&connection).map_err(|error| database.not_migrated(error))?;
            return Err(OpenError::NotMigrated { path: database.path, found, known: VERSION });
        };
        database.pin()?;
        Self::serve(database, salt, None)
    }

    /// Starts the threads, one that writes among them if there is a connection for it.
    fn serve(
        database: Database,
        salt: Salt,
        connection: Option<Connection>,
    ) -> Result<Self, OpenError> {
        // Declared first, dropped last: a queue that is still open would be waited for.
        let mut threads = Threads::default();
        let (writes, jobs) = mpsc::channel(writer::QUEUE_BATCHES_MAX);
        if let Some(connection) = connection {
            let own = database.clone();
            threads.spawn("hapax-sqlite-writer", || writer::run(own, connection, jobs))?;
        }
        let (reads, jobs) = mpsc::channel(reader::QUEUE_READS_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..database.options.readers {
            let (own, jobs) = (database.clone(), Arc::clone(&jobs));
            threads.spawn("hapax-sqlite-reader", move || reader::run(own, &jobs))?;
        }
        let path = database.path;
        let bell = Bell::new();
        Ok(Self { shared: Arc::new(Shared { path, salt, bell, writes, reads, _threads: threads }) })
    }

    /// Hands a read over; the answer is lost only with the reader that was at it.
    async fn read<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<T>) -> reader::Job,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.shared.reads.send(job(reply)).await;
        sent.map_err(|_| StoreError::unavailable(Stopped))?;
        answer.await.map_err(|_| StoreError::unavailable(Stopped))
    }

    /// Hands over a read that only its asker understands.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let errand = |reply: oneshot::Sender<Result<T, StoreError>>| {
            Errand::new(move |reader: &mut reader::Reader| {
                let now = reader.now();
                let _ = reply.send(reader.snapshot(|snapshot| read(snapshot, now)));
            })
        };
        self.read(|reply| reader::Job::Other(errand(reply))).await?
    }

    /// Hands over a write that only its asker understands, in a transaction of its own.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let errand = |reply: oneshot::Sender<Result<T, StoreError>>| {
            Errand::new(move |writer: &mut writer::Writer| {
                let _ = reply.send(writer.change(work));
            })
        };
        self.write(|reply| writer::Job::Other(errand(reply))).await
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.shared.bell
    }

    /// Hands a write over; once it is, only the writer's answer says what became of it.
    async fn write<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> writer::Job,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.shared.writes.send(job(reply)).await;
        sent.map_err(|_| StoreError::unavailable(Stopped))?;
        answer.await.map_err(|_| StoreError::unconfirmed(Stopped))?
    }
}

impl store::Store for Store {
    fn salt(&self) -> Salt {
        self.shared.salt
    }

    /// One batch commits while the next is gathered.
    fn lanes(&self) -> usize {
        2
    }

    async fn commit(&self, batch: Batch) -> Committed {
        if batch.is_empty() {
            return Committed::default();
        }
        let shape = Shape::of(&batch);
        let (reply, answer) = oneshot::channel();
        if let Err(unsent) = self.shared.writes.send(writer::Job::Commit { batch, reply }).await {
            drop(unsent);
            return shape.all_failed(&StoreError::unavailable(Stopped));
        }
        answer.await.unwrap_or_else(|_| shape.all_failed(&StoreError::unconfirmed(Stopped)))
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let count = ids.len();
        let loaded = self.read(|reply| reader::Job::Load { ids, reply }).await;
        loaded.unwrap_or_else(|error| vec![Err(error); count])
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.read(|reply| reader::Job::Steps { id, reply }).await?
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.read(|reply| reader::Job::Overdue { limit, reply }).await?
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        self.write(|reply| writer::Job::Purge { limit, reply }).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.look_up(|connection, now| {
            Ok(ClockReading { now, mark: clock_mark::read(connection)? })
        })
        .await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.write(|reply| writer::Job::KeepClock { mark, reply }).await
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.read(|reply| reader::Job::List { filter, page, reply }).await?
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.change(move |connection, _| commit::withdraw(connection, &attempt)).await
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.write(|reply| writer::Job::Note { note, reply }).await
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.read(|reply| reader::Job::Notes { id, limit, reply }).await?
    }

    async fn watch(&self, _: OperationId) {
        std::future::pending().await
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

/// Fields are dropped in this order: the queues close, then the threads are waited for.
struct Shared {
    path: PathBuf,
    salt: Salt,
    bell: Bell,
    writes: mpsc::Sender<writer::Job>,
    reads: mpsc::Sender<reader::Job>,
    _threads: Threads,
}

#[derive(Default)]
struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
        self.0.push(thread.map_err(OpenError::System)?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // A panic was told to whoever waited for its answer.
            let _ = thread.join();
        }
    }
}

/// How many items of each kind an answer must have.
struct Shape {
    claims: usize,
    settles: usize,
    renews: usize,
    steps: usize,
}

impl Shape {
    fn of(batch: &Batch) -> Self {
        Self {
            claims: batch.claims.len(),
            settles: batch.settles.len(),
            renews: batch.renews.len(),
            steps: batch.steps.len(),
        }
    }

    fn all_failed(&self, error: &StoreError) -> Committed {
        Committed {
            claims: vec_of(error, self.claims),
            settles: vec_of(error, self.settles),
            renews: vec_of(error, self.renews),
            steps: vec_of(error, self.steps),
        }
    }
}

fn vec_of<T>(error: &StoreError, count: usize) -> Vec<Result<T, StoreError>> {
    (0..count).map(|_| Err(error.clone())).collect()
}
