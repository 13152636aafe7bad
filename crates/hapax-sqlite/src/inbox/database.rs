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
    Event, StoreError, TransactionError,
    inbox::{First, Inbox, MessageAnswer, MessageArrival, MessageEnd, MessageEntered},
};
use hapax_sql::{
    Session, TransactionFault, Value,
    inbox::{ForMessages, InboxContext, unit},
};
use hapax_sqlite_file::is_busy;
use rusqlite::Connection;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{PATIENCE, statements::STATEMENTS};
use crate::{
    emit,
    error::{MigrateError, nothing_written},
    migrate,
    options::Clock,
    session::{CopiedRow, fault, query},
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

    /// The same with an open transaction; `None` if others wrote for too long.
    async fn begun(&self) -> Result<Option<WriteConnection>, StoreError> {
        let Some(line) = self.line().await? else { return Ok(None) };
        match line.open().execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => Ok(Some(line)),
            Err(error) if is_busy(&error) => Ok(None),
            Err(error) => Err(nothing_written(error)),
        }
    }

    async fn session(&self) -> Result<WriteConnection, StoreError> {
        let line = self.line().await?;
        line.ok_or_else(|| StoreError::unavailable("others wrote for too long"))
    }

    fn context(&self) -> InboxContext {
        InboxContext { statements: &STATEMENTS, now: Some(self.clock.now()), salt: None }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

/// A transaction that acts on messages: a connection, to be written through.
///
/// Its own savepoints are welcome. `COMMIT` and `ROLLBACK` are not the handler's to give. Dropped
/// without an end, it is rolled back.
pub struct Transaction {
    line: WriteConnection,
    purpose: ForMessages,
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
        f.debug_struct("Transaction").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

impl Inbox for Database {
    type Transaction = Transaction;

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Transaction>, TransactionError> {
        let Some(mut line) = self.begun().await? else {
            return Ok(MessageEntered::Answer(MessageAnswer::Busy));
        };
        Ok(match unit::enter(&mut line, self.context(), None, arrival).await? {
            Ok(purpose) => MessageEntered::First(First {
                last: purpose.last(),
                held: purpose.held(),
                transaction: Transaction { line, purpose, events: Vec::new() },
            }),
            Err(answer) => MessageEntered::Answer(answer),
        })
    }

    async fn enter_all(
        &self,
        arrivals: &[MessageArrival],
    ) -> Result<Option<Transaction>, TransactionError> {
        let Some(mut line) = self.begun().await? else { return Ok(None) };
        let entered = unit::enter_all(&mut line, self.context(), None, arrivals).await?;
        Ok(entered.map(|purpose| Transaction { line, purpose, events: Vec::new() }))
    }

    async fn leave(
        &self,
        transaction: Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        let Transaction { mut line, purpose, events } = transaction;
        unit::leave(&mut line, self.context(), &purpose, end).await?;
        for event in &events {
            emit(line.open(), event).map_err(nothing_written)?;
        }
        let committed = line.open().execute_batch("COMMIT");
        committed.map_err(|error| fault(error).of_commit())
    }

    async fn take_back(&self, transaction: Transaction) {
        drop(transaction);
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        error.downcast_ref::<rusqlite::Error>().is_some_and(is_busy)
    }

    hapax_sql::inbox_tables!();
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

impl Session for WriteConnection {
    type Row = CopiedRow;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<CopiedRow>, TransactionFault> {
        let connection = self.connection.as_mut();
        let gone = || TransactionFault::unanswered("the connection is gone");
        query(connection.ok_or_else(gone)?, text, values).map_err(fault)
    }
}
