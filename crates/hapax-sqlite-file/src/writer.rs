use std::{
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
};

use rusqlite::{Connection, TransactionBehavior};

use crate::{
    error::{Panicked, TransactError},
    file::DatabaseFile,
};

/// A file somebody understands: how it is recognised, made and prepared.
pub trait Connect: Send + 'static {
    /// Why there is no connection.
    type Error: Error + Send + Sync + 'static;

    /// Which file it is.
    fn file(&self) -> &DatabaseFile;

    /// A connection that may write.
    fn connect(&self) -> Result<Connection, Self::Error>;

    /// Fails at this place if a test wants it to.
    fn fault_at(&self, place: &'static str) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// The places one kind of transaction passes, where tests make it fail.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// Nothing is locked yet.
    pub before_begin: &'static str,
    /// The write lock is held, nothing is written.
    pub after_begin: &'static str,
    /// All is written and can still be rolled back.
    pub before_commit: &'static str,
    /// It is on disk and nobody was told.
    pub after_commit: &'static str,
}

/// The one connection that writes. Dropped, it leaves one file behind, where no other process has it
/// open.
#[derive(Debug)]
pub struct FileWriter<D> {
    database: D,
    /// `None` after a failure that may have left it unusable; opened anew when needed.
    connection: Option<Connection>,
}

impl<D: Connect> FileWriter<D> {
    /// Writes through this connection first, and then through those the database makes.
    pub fn new(database: D, connection: Connection) -> Self {
        Self { database, connection: Some(connection) }
    }

    /// What it writes to.
    pub fn database(&self) -> &D {
        &self.database
    }

    /// Runs `work` in a transaction of its own, while the write lock is held. Whatever goes wrong, the
    /// answer says whether anything may have been written, and the next transaction starts clean.
    pub fn write<T>(
        &mut self,
        places: &Places,
        work: impl FnOnce(&D, &Connection) -> Result<T, TransactError>,
    ) -> Result<T, TransactError> {
        self.transact(|database, connection, committing| {
            let pass = |place| database.fault_at(place);
            pass(places.before_begin).map_err(TransactError::unavailable)?;
            let behavior = TransactionBehavior::Immediate;
            let transaction = connection.transaction_with_behavior(behavior)?;
            database.file().still_there()?;
            pass(places.after_begin).map_err(TransactError::unavailable)?;
            let done = work(database, &transaction)?;
            pass(places.before_commit).map_err(TransactError::unavailable)?;
            *committing = true;
            transaction.commit().map_err(TransactError::of_commit)?;
            pass(places.after_commit).map_err(TransactError::unconfirmed)?;
            Ok(done)
        })
    }

    /// Runs `work`, which only reads, on one snapshot.
    pub fn read<T>(
        &mut self,
        work: impl FnOnce(&D, &Connection) -> Result<T, TransactError>,
    ) -> Result<T, TransactError> {
        self.transact(|database, connection, _| {
            let snapshot = connection.transaction()?;
            let found = work(database, &snapshot)?;
            snapshot.commit()?;
            Ok(found)
        })
    }

    fn transact<T>(
        &mut self,
        attempt: impl FnOnce(&D, &mut Connection, &mut bool) -> Result<T, TransactError>,
    ) -> Result<T, TransactError> {
        let result = self.attempt(attempt);
        if let Err(error) = &result {
            let path = self.database.file().path().display();
            tracing::warn!(%path, error = error as &dyn Error, "a transaction failed");
        }
        result
    }

    fn attempt<T>(
        &mut self,
        attempt: impl FnOnce(&D, &mut Connection, &mut bool) -> Result<T, TransactError>,
    ) -> Result<T, TransactError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.database.connect().map_err(TransactError::unavailable)?,
        };
        let mut committing = false;
        let attempt =
            AssertUnwindSafe(|| attempt(&self.database, &mut connection, &mut committing));
        let result = catch_unwind(attempt).unwrap_or_else(|payload| {
            let panicked = Panicked::new(payload.as_ref());
            Err(if committing {
                TransactError::unconfirmed(panicked)
            } else {
                TransactError::unavailable(panicked)
            })
        });
        let clean = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        if clean && !matches!(result, Err(TransactError::Unconfirmed(_))) {
            self.connection = Some(connection);
        }
        result
    }
}

impl<D> Drop for FileWriter<D> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let checkpoint = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = checkpoint.and_then(|()| connection.close().map_err(|(_, error)| error))
        {
            tracing::warn!(%error, "the log was not copied into the file; it will be next time");
        }
    }
}
