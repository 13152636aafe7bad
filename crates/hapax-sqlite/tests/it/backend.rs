use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use hapax_core::{Faults, OperationId, Timestamp};
use hapax_sqlite::{Clock, Options, Store};
use hapax_verify::conformance::{Backend, Damage};
use rusqlite::Connection;
use tempfile::TempDir;

/// A database file in a directory of its own, with a clock that only tests move.
pub(crate) struct Sqlite {
    directory: TempDir,
    micros: Arc<AtomicI64>,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory, micros: Arc::new(AtomicI64::new(1_800_000_000_000_000)) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("hapax.db")
    }

    pub(crate) fn now(&self) -> impl Fn() -> Timestamp + Send + Sync + 'static {
        let micros = Arc::clone(&self.micros);
        move || Timestamp::from_micros(micros.load(Ordering::SeqCst))
    }

    pub(crate) fn options(&self) -> Options {
        Options { clock: Clock::new(self.now()), ..Options::default() }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.path(), self.options()).expect("the store opens")
    }

    /// As any SQLite client sees the file.
    pub(crate) fn client(&self) -> Connection {
        Connection::open(self.path()).expect("the file opens")
    }

    pub(crate) fn move_clock(&self, micros: i64) {
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Backend for Sqlite {
    type Store = Store;

    const PLACES: &'static [&'static str] = hapax_sqlite::PLACES;

    async fn create() -> Self {
        Self::new()
    }

    async fn open(&self, faults: Faults) -> Store {
        let options = Options { faults, ..self.options() };
        Store::open(self.path(), options).expect("the store opens")
    }

    async fn step_clock(&self, micros: i64) {
        self.move_clock(micros);
    }

    async fn damage(&self, id: OperationId, damage: Damage) {
        let change = match damage {
            Damage::FlippedBodyBit => {
                "body = CAST(iif(substr(body, 1, 1) = x'00', x'01', x'00') || substr(body, 2) AS BLOB)"
            }
            Damage::LostOutcome => "head = NULL, body = NULL, digest = NULL",
            Damage::UnknownState => "state = 99",
            Damage::NewerRow => "format = format + 1",
            Damage::NewerOutcome => "head = CAST(x'02' || substr(head, 2) AS BLOB)",
            Damage::FlippedStepBit => {
                "result = CAST(iif(substr(result, 1, 1) = x'00', x'01', x'00') || substr(result, 2) AS BLOB)"
            }
            Damage::NewerStep => "format = format + 1",
        };
        let by_row = "row = (SELECT row FROM hapax_claims WHERE id = ?1)";
        let tables: &[_] = match damage {
            Damage::FlippedBodyBit | Damage::LostOutcome | Damage::NewerOutcome => {
                &[("hapax_ends", by_row)]
            }
            Damage::UnknownState => &[("hapax_ends", by_row), ("hapax_open", by_row)],
            Damage::NewerRow => &[("hapax_claims", "id = ?1")],
            Damage::FlippedStepBit | Damage::NewerStep => &[("hapax_steps", "id = ?1")],
        };
        let client = self.client();
        let damage = |(table, which): &(&str, &str)| {
            let sql = format!("UPDATE {table} SET {change} WHERE {which}");
            client.execute(&sql, [id.as_bytes()]).expect("the row changes")
        };
        assert_eq!(tables.iter().map(damage).sum::<usize>(), 1, "there is a row to damage");
    }
}
