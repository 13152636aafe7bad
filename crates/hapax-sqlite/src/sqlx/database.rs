use std::{error::Error, fmt, sync::Arc, time::Duration};

use hapax_core::{
    Attempt, Faults, OperationId, Record, Salt, StoreError, Timestamp, TransactionError,
    outbox::Ringer,
    transaction::{self, End, Entered, Entrance, Granted},
};
use hapax_sql::operation::unit;
use sqlx::{Executor as _, SqlitePool};
use tokio::{
    sync::{OnceCell, Semaphore},
    time::{Instant, timeout_at},
};

use super::{
    error::{NotMigrated, commit_failed, is_busy, nothing_written},
    migrate::{next_step, read_salt},
    transaction::{CleanConnection, Transaction},
};
use crate::{
    error::MigrateError,
    inbox::PATIENCE,
    options::Clock,
    transaction::{LogRecord, SAVEPOINT, answer_before, place},
};

/// The longest a transaction waits for its turn and for the lock.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Your own SQLite database, whose transactions hold records beside your own writes. Clones share
/// it.
///
/// SQLite lets one transaction write at a time, whatever it writes. Those of one `Database` take
/// turns in the order they came, without polling; with other writers of the file, in this process
/// or another, they compete for SQLite's lock. Both are waited for as long as
/// [`Entrance::wait`] says, an hour at most, and then the operation is busy. Replays wait for
/// nobody.
///
/// ```
/// use hapax_core::Database as _;
/// use hapax_sqlite::sqlx::{Database, migrate};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().create_if_missing(true);
/// # let options = options.filename(directory.path().join("shop.db"));
/// # let pool = sqlx::SqlitePool::connect_with(options).await?;
/// let salt = migrate(&pool).await?;
/// assert_eq!(Database::new(pool).salt().await?, salt);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Database {
    pool: SqlitePool,
    pub(super) clock: Clock,
    faults: Faults,
    pub(super) ringer: Option<Ringer>,
    pub(super) turns: Arc<Semaphore>,
    /// How long a message waits for other writers.
    pub(super) patience: Duration,
    salt: Arc<OnceCell<Salt>>,
}

impl Database {
    /// The database of this pool, in which the tables of Hapax are: see [`migrate`](super::migrate).
    pub fn new(pool: SqlitePool) -> Self {
        let turns = Arc::new(Semaphore::new(1));
        let (clock, faults) = (Clock::default(), Faults::default());
        let salt = Arc::default();
        Self { pool, clock, faults, ringer: None, turns, patience: PATIENCE, salt }
    }

    /// The same, ringing an outbox after each transaction that emitted something, so that its relays
    /// send at once.
    #[must_use]
    pub fn rings(self, ringer: Ringer) -> Self {
        Self { ringer: Some(ringer), ..self }
    }

    /// The same, with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same, failing where a test wants it to, at one of
    /// [`PLACES`](crate::transaction::PLACES).
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// The same, in which messages wait so long for other writers of the file.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub(super) async fn hold(&self) -> Result<CleanConnection, StoreError> {
        self.pool.acquire().await.map(CleanConnection::new).map_err(nothing_written)
    }

    fn record(&self, id: OperationId) -> LogRecord {
        LogRecord::new(id, &self.clock)
    }

    async fn read_salt(&self) -> Result<Salt, TransactionError> {
        let mut held = self.hold().await?;
        let salt = match next_step(&mut held).await.map_err(unusable)? {
            Some(_) => Err(StoreError::unavailable(NotMigrated)),
            None => read_salt(&mut held).await.map_err(unusable),
        };
        held.give_back();
        Ok(salt?)
    }

    fn pass(&self, place: &'static str) -> Result<(), StoreError> {
        self.faults.at(place).map_err(StoreError::unavailable)
    }
}

impl transaction::Database for Database {
    type Transaction = Transaction;

    async fn salt(&self) -> Result<Salt, TransactionError> {
        self.salt.get_or_try_init(|| self.read_salt()).await.copied()
    }

    async fn begin(
        &self,
        entrance: &Entrance,
    ) -> Result<Entered<Self::Transaction>, TransactionError> {
        self.salt().await?;
        self.pass(place::BEFORE_BEGIN)?;
        let id = entrance.operation.id();
        let mut held = self.hold().await?;
        let answer = answer_before(&mut held, self.record(id), entrance).await?;
        held.give_back();
        if let Some(answer) = answer {
            return Ok(Entered::Answer(answer));
        }
        let busy = Entered::Answer(unit::BUSY);
        let until = Instant::now() + entrance.wait.min(WAIT_MAX);
        let turn = timeout_at(until, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Ok(busy) };
        let mut held = self.hold().await?;
        let left = until.saturating_duration_since(Instant::now());
        match held.begin_immediate(Some(left)).await {
            Ok(()) => {}
            Err(error) if is_busy(&error) => {
                held.give_back();
                return Ok(busy);
            }
            Err(error) => return Err(nothing_written(error).into()),
        }
        let purpose = match unit::enter(&mut held, self.record(id), entrance).await? {
            Ok(purpose) => purpose,
            Err(answer) => {
                held.roll_back().await;
                return Ok(Entered::Answer(answer));
            }
        };
        held.execute(SAVEPOINT).await.map_err(nothing_written)?;
        self.pass(place::AFTER_BEGIN)?;
        let attempt = purpose.attempt();
        let transaction = Transaction::new(held, purpose, self.ringer.clone(), turn);
        Ok(Entered::Execute(Granted { transaction, attempt }))
    }

    async fn finish(
        &self,
        mut transaction: Self::Transaction,
        end: &End,
    ) -> Result<Timestamp, TransactionError> {
        self.pass(place::AFTER_WORK)?;
        let expires_at = transaction.write(end).await?;
        self.pass(place::BEFORE_COMMIT)?;
        transaction.commit().await.map_err(commit_failed)?;
        self.faults.at(place::AFTER_COMMIT).map_err(StoreError::unconfirmed)?;
        Ok(expires_at)
    }

    async fn fail(
        &self,
        mut transaction: Self::Transaction,
        end: &End,
    ) -> Result<Timestamp, TransactionError> {
        transaction.undo().await?;
        self.finish(transaction, end).await
    }

    async fn roll_back(&self, transaction: Self::Transaction) {
        transaction.roll_back().await;
    }

    async fn find_out(&self, attempt: &Attempt) -> Result<Option<Record>, TransactionError> {
        let _turn = self.turns.acquire().await.map_err(StoreError::unavailable)?;
        let mut held = self.hold().await?;
        held.begin_immediate(None).await.map_err(nothing_written)?;
        let found = unit::read_ended(&mut held, self.record(attempt.id)).await?;
        held.commit().await.map_err(nothing_written)?;
        Ok(found)
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        error.downcast_ref::<sqlx::Error>().is_some_and(is_busy)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("pool", &self.pool).finish_non_exhaustive()
    }
}

fn unusable(error: MigrateError<sqlx::Error>) -> StoreError {
    match error {
        MigrateError::Sqlite(error) => nothing_written(error),
        MigrateError::NewerSchema { .. } => StoreError::too_new(error),
        MigrateError::Damaged { .. } => StoreError::damaged(error),
        MigrateError::System(_) => StoreError::unavailable(error),
    }
}
