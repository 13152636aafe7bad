use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use hapax_core::{
    Attempt, Note, Noted, OneLine, OperationId, Record, Salt, StoreError, StoredStep, Timestamp,
    clock::{ClockMark, ClockReading},
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    outbox::Bell,
    store::{self, Filter, Listed, Loaded, Page, Purged, Write, Written},
};
use hapax_sqlite_file::{
    Connect as _, FileWriter, Places, Stopped, Threads, TransactError, WriterJob,
};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    clock_mark, commit,
    connect::Database,
    error::{OpenError, store_error},
    incarnation, log, migrate,
    migrate::salt_of,
    notes,
    options::Options,
    position::PositionFile,
    reader::{self, ReadSession},
    retire,
    script::{VERSION, schema_version},
    writer,
};

/// Records in one SQLite file. Clones share it.
///
/// Any number of processes may open the same file. When the last clone is dropped, what is queued
/// is finished and the file is closed before the drop returns.
///
/// ```
/// use hapax_engine::{Engine, Options};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("hapax.db");
/// let store = hapax_sqlite::Store::open(path, hapax_sqlite::Options::default())?;
/// let engine = Engine::start(store, Options::default());
/// engine.takes_writes().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// The places of [`hapax_core::Faults`] a store passes on its way to and from the file.
pub const PLACES: &[&str] = &[
    writer::COMMIT.before_begin,
    writer::COMMIT.after_begin,
    writer::COMMIT.before_commit,
    writer::COMMIT.after_commit,
    writer::PURGE.before_begin,
    writer::PURGE.after_begin,
    writer::PURGE.before_commit,
    writer::PURGE.after_commit,
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
        let mut connection = database.connect()?;
        let migrated = migrate(&mut connection);
        let salt = migrated.map_err(|error| database.not_migrated(error))?;
        database.pin()?;
        database.remember(&mut connection)?;
        Self::serve(&database, salt, Some(connection))
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
            let path = database.file().path().to_owned();
            return Err(OpenError::NotMigrated { path, found, known: VERSION });
        };
        database.pin()?;
        Self::serve(&database, salt, None)
    }

    /// Starts the threads, one that writes among them if there is a connection for it.
    fn serve(
        database: &Database,
        salt: Salt,
        connection: Option<Connection>,
    ) -> Result<Self, OpenError> {
        let path = database.file().path().to_owned();
        let denied = |source| database.file().denied(source);
        let (mut writes, jobs) = Threads::new(writer::QUEUE_BATCHES_MAX);
        if let Some(connection) = connection {
            let writer = FileWriter::new(database.clone(), connection);
            writes.spawn("hapax-sqlite-writer", || writer.run(jobs)).map_err(denied)?;
        }
        let (mut reads, jobs) = Threads::new(reader::QUEUE_READS_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..database.options.readers {
            let (own, jobs) = (database.clone(), Arc::clone(&jobs));
            let run = move || reader::run(own, &jobs);
            reads.spawn("hapax-sqlite-reader", run).map_err(denied)?;
        }
        let (drawn, bell) = (incarnation::draw(), Bell::new());
        Ok(Self { shared: Arc::new(Shared { path, salt, drawn, bell, reads, writes }) })
    }

    /// Hands a read over; the answer is lost only with the reader that was at it.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut ReadSession) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let job = |reply: oneshot::Sender<T>| -> reader::Job {
            // Whoever asked may have left.
            Box::new(move |reader| drop(reply.send(read(reader))))
        };
        self.shared.reads.ask(job).await.map_err(|_| StoreError::unavailable(Stopped))
    }

    /// Hands over a read that only its asker understands.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read(move |reader| {
            let now = reader.now();
            reader.snapshot(|snapshot| read(snapshot, now))
        })
        .await?
    }

    /// Hands over a write that only its asker understands, in a transaction of its own.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.change_at(&writer::COMMIT, work).await
    }

    async fn change_at<T: Send + 'static, E: Into<TransactError> + 'static>(
        &self,
        places: &'static Places,
        work: impl FnOnce(&Connection, Timestamp) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        let job = |reply| writer::alone(places, work, reply);
        self.shared.writes.ask(job).await.map_err(store_error)?
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.shared.bell
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

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        if batch.is_empty() {
            return Vec::new();
        }
        let count = batch.len();
        let job = |reply| WriterJob::Grouped(writer::Commit { batch, reply });
        let answers = self.shared.writes.ask(job).await;
        answers.unwrap_or_else(|error| vec![Err(store_error(error)); count])
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        let count = ids.len();
        let loaded = self.read(move |reader| reader.load(&ids)).await.flatten();
        loaded.unwrap_or_else(|error| vec![Err(error); count])
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.read(move |reader| reader.steps(id)).await?
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.read(move |reader| reader.overdue(limit)).await?
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        let purge = move |connection: &Connection, now| retire::purge(connection, now, limit);
        let purged = self.change_at(&writer::PURGE, purge).await?;
        if let Err(error) = self.read(ReadSession::remember_less).await.flatten() {
            let error = OneLine::of(&error);
            tracing::warn!(%error, "what is remembered of the file stays as large as it is");
        }
        Ok(purged)
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.look_up(|connection, now| {
            Ok(ClockReading { now, mark: log::ready(clock_mark::read(&mut &*connection))? })
        })
        .await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        let keep = move |connection: &Connection, _| clock_mark::keep(connection, mark);
        self.change_at(&writer::KEEP_CLOCK, keep).await
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        let found = self.look_up(incarnation::read).await?;
        found.into_reading(self.shared.drawn, &PositionFile::of(&self.shared.path))
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        let drawn = self.shared.drawn;
        let beside = PositionFile::of(&self.shared.path);
        let announced = beside.clone();
        let keep = move |connection: &Connection, _| {
            incarnation::announce(connection, &announced, drawn)?;
            Ok::<_, TransactError>(incarnation::keep(connection, &change, drawn)?)
        };
        let kept = self.change_at(&writer::KEEP_PAST, keep).await?;
        if kept {
            // Only now: what is beside the file must never be ahead of it.
            let remember =
                move |connection: &Connection, _| incarnation::remember(connection, &beside);
            self.change_at(&writer::REMEMBER, remember).await?;
        }
        Ok(kept)
    }

    /// A file is what it is: one that was put in its place is refused by whoever holds the old one.
    fn admit(&self, _: &Incarnation) {}

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.read(move |reader| reader.list(&filter, page)).await?
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.change(move |connection, now| commit::withdraw(connection, now, &attempt)).await
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.change(move |connection, now| notes::keep(connection, now, &note)).await
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.read(move |reader| reader.notes(id, limit)).await?
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

/// Fields are dropped in this order: the writer closes the file last.
struct Shared {
    path: PathBuf,
    salt: Salt,
    /// The name of the file, should it have none yet.
    drawn: i64,
    bell: Bell,
    reads: Threads<reader::Job>,
    writes: Threads<writer::Job>,
}
