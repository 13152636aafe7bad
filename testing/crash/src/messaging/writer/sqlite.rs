use std::{ops::Range, path::PathBuf, sync::Arc, thread, time::Duration};

use hapax_core::Event;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::watch;

use super::{BUSINESS, COUNT, CommittedEvent, Draft, KEEP, READ, SharedLedger};
use crate::error::CrashError;

/// Nobody else writes meanwhile.
const OPEN_MS: Range<u64> = 20..150;
const PACE_MS: Range<u64> = 20..60;
const BUSY: Duration = Duration::from_secs(20);

/// A business in a SQLite file.
#[derive(Debug, Clone)]
pub(in super::super) struct Sqlite {
    pub(super) path: PathBuf,
    pub(super) lines: usize,
    pub(super) told: Arc<SharedLedger>,
}

impl Sqlite {
    pub(super) fn prepare(&self) -> Result<(), CrashError> {
        let mut connection = self.open().map_err(refused)?;
        let wal = connection.pragma_update(None, "journal_mode", "wal");
        wal.map_err(refused)?;
        let migrated = hapax_sqlite::migrate(&mut connection);
        migrated.map_err(CrashError::refused("make the schema"))?;
        connection.execute_batch(BUSINESS).map_err(refused)
    }

    /// Writes until told to stop.
    pub(super) fn write(
        self,
        mut dice: fastrand::Rng,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), CrashError> {
        let mut connection = self.open().map_err(refused)?;
        while !*stop.borrow() {
            self.transact(&mut connection, &mut dice).map_err(refused)?;
            thread::sleep(Duration::from_millis(dice.u64(PACE_MS)));
        }
        Ok(())
    }

    pub(super) fn read(&self) -> Result<Vec<CommittedEvent>, CrashError> {
        let read = || {
            let connection = self.open()?;
            let mut statement = connection.prepare(READ)?;
            let rows = statement.query_map([], |row| {
                let (id, topic, key) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(CommittedEvent { id, topic, key, version: row.get(3)?, poison: row.get(4)? })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(refused)
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    }

    fn transact(
        &self,
        connection: &mut Connection,
        dice: &mut fastrand::Rng,
    ) -> rusqlite::Result<()> {
        let draft = Draft::draw(dice, self.lines, OPEN_MS);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let ids = fill(&transaction, &draft)?;
        if draft.commits {
            transaction.commit()?;
            self.told.ledger().committed.extend(ids);
        } else {
            self.told.ledger().rolled_back.extend(ids);
            transaction.rollback()?;
        }
        Ok(())
    }
}

fn fill(transaction: &Transaction<'_>, draft: &Draft) -> rusqlite::Result<Vec<String>> {
    let mut ids = Vec::new();
    for planned in &draft.events {
        let version: i64 = transaction.query_row(COUNT, [planned.name()], |row| row.get(0))?;
        let event = Event::new(&planned.topic, &planned.key, planned.payload());
        let refused = |error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
        let id = hapax_sqlite::emit(transaction, &event.map_err(refused)?)?;
        let kept = params![id, planned.topic, planned.key, version, planned.poison];
        transaction.execute(KEEP, kept)?;
        ids.push(id);
    }
    if let Some(span) = draft.left_open {
        thread::sleep(span);
    }
    Ok(ids)
}

fn refused(error: rusqlite::Error) -> CrashError {
    CrashError::refused("write events")(error)
}
