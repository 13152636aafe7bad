//! A program with a database of its own: what tests of transactions share.

use std::time::Duration;

use hapax_core::{AnswerMeaning, AttemptAnswer, Faults, Fingerprint, Injected, Outcome};
use hapax_sqlite::{Answered, Clock, OnceRequest, TransactionOnceError, migrate, once};
use rusqlite::{Connection, Transaction};

use crate::{backend::Sqlite, calls::operation};

/// The tables of a shop, in the mode the shop chose.
pub(crate) fn open(sqlite: &Sqlite) -> Connection {
    let mut connection = sqlite.client();
    connection.busy_timeout(Duration::from_secs(10)).expect("set");
    connection.pragma_update(None, "journal_mode", "WAL").expect("set");
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS payments (number INTEGER PRIMARY KEY, key TEXT NOT NULL)",
        )
        .expect("created");
    migrate(&mut connection).expect("migrated");
    connection
}

pub(crate) fn unit(sqlite: &Sqlite, key: &str) -> OnceRequest {
    let fingerprint = Fingerprint::from_bytes([7; Fingerprint::BYTES]);
    OnceRequest { clock: Clock::new(sqlite.now()), ..OnceRequest::new(operation(key), fingerprint) }
}

pub(crate) fn pay(
    connection: &mut Connection,
    unit: &OnceRequest,
    status: u16,
) -> Result<Answered, TransactionOnceError<rusqlite::Error>> {
    once(connection, unit, |tx| {
        insert(tx, unit.operation.key().as_str())?;
        Ok(answer(status))
    })
}

/// An answer of the shop, and what it means by that.
pub(crate) fn answer(status: u16) -> AttemptAnswer {
    let meaning = match status {
        ..400 => AnswerMeaning::Completed,
        401 | 429 => AnswerMeaning::NotDone,
        400..500 => AnswerMeaning::Failed,
        500.. => AnswerMeaning::TakenForNotDone,
    };
    AttemptAnswer { outcome: Outcome::bare(status), meaning }
}

pub(crate) fn insert(tx: &Transaction<'_>, key: &str) -> rusqlite::Result<()> {
    tx.execute("INSERT INTO payments (key) VALUES (?1)", [key]).map(|_| ())
}

pub(crate) fn payments(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM payments", [], |row| row.get(0)).expect("counted")
}

pub(crate) fn records(connection: &Connection, state: &str) -> i64 {
    let sql = "SELECT count(*) FROM hapax_operations_readable WHERE state = ?1";
    connection.query_row(sql, [state], |row| row.get(0)).expect("counted")
}

/// Fails at one place.
pub(crate) fn failing_at(wanted: &'static str) -> Faults {
    Faults::new(move |place| if place == wanted { Err(Injected { place }) } else { Ok(()) })
}
