//! The inbox of your own file, through `rusqlite`.

use std::{
    error::Error,
    fmt,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hapax_core::{
    Event, Key, Scope, StoreError, Timestamp, TransactionError,
    clock::{ClockMark, ClockReading},
    inbox::{
        First, Inbox, Letter, Message, MessageArrival, MessageEnd, MessageEntered, Partition,
        RegisteredConsumer, Taken, Waiting,
    },
};
use hapax_sqlite_file::is_busy;
use rusqlite::{
    Connection,
    types::{Value, ValueRef},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    PATIENCE,
    cell::{Cell, Cells},
    sql_session::SqlSession,
    tables, unit,
};
use crate::{
    emit,
    error::{MigrateError, commit_failed, nothing_written},
    migrate,
    options::Clock,
};

/// Your own SQLite file, whose transactions hold what became of messages beside your own writes.
/// Clones share it.
///
/// Transactions of one `Database` take turns in the order they came; with other writers of the file
/// they compete for SQLite's lock. Handlers call `rusqlite`, which blocks the thread they run on for as
/// long as the disk takes.
///
/// ```
/// use hapax_sqlite::inbox::Database;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("hapax.db");
/// // A consumer of `hapax-messaging` acts on messages in transactions of this file.
/// let database = Database::open(path)?;
/// # drop(database);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
    clock: Clock,
    patience: Duration,
}

struct Shared {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    turns: Arc<Semaphore>,
}

impl Database {
    /// Opens the file, and creates the tables of Hapax in it or brings them up to date.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MigrateError> {
        let path = path.as_ref().to_owned();
        let mut connection = Connection::open(&path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.busy_timeout(PATIENCE)?;
        migrate(&mut connection)?;
        let (idle, turns) = (Mutex::new(vec![connection]), Arc::new(Semaphore::new(1)));
        let shared = Arc::new(Shared { path, idle, turns });
        Ok(Self { shared, clock: Clock::default(), patience: PATIENCE })
    }

    /// The same, with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same, waiting so long for other writers of the file.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// A connection, and the turn to write on it; `None` if others wrote for too long.
    async fn line(&self) -> Result<Option<WriteConnection>, StoreError> {
        let turn = Arc::clone(&self.shared.turns).acquire_owned();
        let Ok(Ok(turn)) = timeout(self.patience, turn).await else { return Ok(None) };
        let idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => Connection::open(&self.shared.path).map_err(nothing_written)?,
        };
        connection.busy_timeout(self.patience).map_err(nothing_written)?;
        let shared = Arc::clone(&self.shared);
        Ok(Some(WriteConnection { connection: Some(connection), shared, _turn: turn }))
    }

    async fn desk(&self) -> Result<WriteConnection, StoreError> {
        let line = self.line().await?;
        line.ok_or_else(|| StoreError::unavailable("others wrote for too long"))
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

/// A transaction that acts on a message: a connection, to be written through.
///
/// Its own savepoints are welcome. `COMMIT` and `ROLLBACK` are not the handler's to give. Dropped
/// without an end, it is rolled back.
pub struct Transaction {
    line: WriteConnection,
    arrival: MessageArrival,
    events: Vec<Event>,
}

impl Transaction {
    /// Publishes an event if, and only if, this transaction commits.
    pub fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Runs one statement of the handler's own; how many rows it changed.
    pub fn execute(
        &mut self,
        text: &str,
        params: impl rusqlite::Params,
    ) -> rusqlite::Result<usize> {
        self.line.open().execute(text, params)
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.line.open()
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("arrival", &self.arrival).finish_non_exhaustive()
    }
}

impl Inbox for Database {
    type Transaction = Transaction;

    async fn enlist(
        &self,
        name: &Scope,
        retention: Duration,
    ) -> Result<RegisteredConsumer, StoreError> {
        tables::enlist(&mut self.desk().await?, name, retention).await
    }

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Transaction>, TransactionError> {
        let busy = || MessageEntered::Answer(hapax_core::inbox::MessageAnswer::Busy);
        let Some(mut line) = self.line().await? else { return Ok(busy()) };
        match line.open().execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => {}
            Err(error) if is_busy(&error) => return Ok(busy()),
            Err(error) => return Err(nothing_written(error).into()),
        }
        Ok(match unit::enter(&mut line, self.now(), arrival).await? {
            Ok((last, held)) => {
                let (arrival, events) = (arrival.clone(), Vec::new());
                let transaction = Transaction { line, arrival, events };
                MessageEntered::First(First { transaction, last, held })
            }
            Err(answer) => MessageEntered::Answer(answer),
        })
    }

    async fn leave(
        &self,
        transaction: Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        let Transaction { mut line, arrival, events } = transaction;
        unit::leave(&mut line, self.now(), &arrival, end).await?;
        for event in &events {
            emit(line.open(), event).map_err(nothing_written)?;
        }
        Ok(line.open().execute_batch("COMMIT").map_err(commit_failed)?)
    }

    async fn take_back(&self, transaction: Transaction) {
        drop(transaction);
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        error.downcast_ref::<rusqlite::Error>().is_some_and(is_busy)
    }

    async fn missed(&self, consumer: &RegisteredConsumer, id: &Key) -> Result<u32, StoreError> {
        tables::missed(&mut self.desk().await?, self.now(), consumer, id).await
    }

    async fn bury(&self, consumer: &RegisteredConsumer, letter: &Letter) -> Result<(), StoreError> {
        tables::bury(&mut self.desk().await?, self.now(), consumer, letter).await
    }

    async fn take(
        &self,
        consumer: &RegisteredConsumer,
        partition: &Partition,
    ) -> Result<Taken, StoreError> {
        tables::take(&mut self.desk().await?, consumer, partition).await
    }

    async fn waiting(
        &self,
        consumer: &RegisteredConsumer,
        waiting: &Waiting,
    ) -> Result<Vec<Arc<Message>>, StoreError> {
        tables::waiting(&mut self.desk().await?, self.now(), consumer, waiting).await
    }

    async fn forget(&self, limit: usize) -> Result<usize, StoreError> {
        tables::forget(&mut self.desk().await?, self.now(), limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        tables::clock(&mut self.desk().await?, self.now()).await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        tables::keep_clock(&mut self.desk().await?, mark).await
    }
}

/// A connection and the turn to write. It returns without an open transaction, or not at all.
struct WriteConnection {
    connection: Option<Connection>,
    shared: Arc<Shared>,
    _turn: OwnedSemaphorePermit,
}

impl WriteConnection {
    #[expect(clippy::expect_used, reason = "only dropping takes the connection out")]
    fn open(&self) -> &Connection {
        self.connection.as_ref().expect("a line has its connection until it is dropped")
    }
}

impl Drop for WriteConnection {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok() {
            self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

impl SqlSession for WriteConnection {
    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Cell],
    ) -> Result<Vec<Cells>, TransactionError> {
        let connection = self.connection.as_mut().map_or_else(
            || Err(StoreError::unavailable("the connection is gone")),
            |connection| Ok(&*connection),
        )?;
        query(connection, text, values).map_err(|error| {
            if is_busy(&error) {
                TransactionError::conflict(error)
            } else {
                nothing_written(error).into()
            }
        })
    }
}

pub(crate) fn query(
    connection: &Connection,
    text: &str,
    values: &[Cell],
) -> rusqlite::Result<Vec<Cells>> {
    let mut statement = connection.prepare_cached(text)?;
    let columns = statement.column_count();
    let values = values.iter().map(|value| match value {
        Cell::Number(number) => Value::Integer(*number),
        Cell::Text(text) => Value::Text(text.clone()),
        Cell::Bytes(bytes) => Value::Blob(bytes.clone()),
        Cell::Null => Value::Null,
    });
    let rows = statement.query_map(rusqlite::params_from_iter(values), |row| {
        (0..columns)
            .map(|at| {
                Ok(match row.get_ref(at)? {
                    // No column of ours is of a kind with fractions.
                    ValueRef::Null | ValueRef::Real(_) => Cell::Null,
                    ValueRef::Integer(number) => number.into(),
                    ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
                    ValueRef::Blob(bytes) => bytes.into(),
                })
            })
            .collect::<rusqlite::Result<_>>()
            .map(Cells)
    })?;
    rows.collect()
}
