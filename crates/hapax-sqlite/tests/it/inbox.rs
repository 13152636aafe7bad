//! What became of messages: the suite for all inboxes, through both drivers.

use std::{path::PathBuf, time::Duration};

use hapax_core::{Event, Faults, Key, Scope, Store as _, inbox::Inbox};
use hapax_sqlite::{Clock, Store, inbox};
use hapax_verify::conformance::inbox::{EncryptedMessages, InboxBackend};

use crate::backend::Sqlite;

/// Long enough for other tests of the machine, and short where somebody waits for its end.
const PATIENCE: Duration = Duration::from_millis(300);

mod through_rusqlite {
    use super::*;
    hapax_verify::inbox_conformance!(Blocking);
}

mod encrypted {
    use super::*;
    hapax_verify::inbox_conformance!(EncryptedMessages<Blocking>);
}

#[cfg(feature = "sqlx")]
mod through_sqlx {
    use super::*;
    hapax_verify::inbox_conformance!(Pooled);
}

/// A file that a gateway or `hapax keys purge` looks after, and no consumer any more.
#[tokio::test]
async fn messages_past_their_retention_go_with_a_purge_of_the_store() {
    let backend = Blocking(shop());
    let store = hapax_verify::conformance::Backend::open(&backend.0, Faults::default()).await;
    let inbox = backend.open().await;
    let scope = Scope::parse("mailer").unwrap();
    let mailer = inbox.enlist(&scope, Duration::from_secs(60)).await.unwrap();
    for number in 0..5 {
        inbox.missed(&mailer, &Key::parse(format!("m-{number}")).unwrap()).await.unwrap();
    }
    let record = "INSERT INTO hapax_inbox (consumer, message_id, state, content, received_at) \
                  SELECT number, 'm-1', 1, zeroblob(16), 0 FROM hapax_inbox_consumers";
    rusqlite::Connection::open(path(&backend.0)).unwrap().execute(record, []).unwrap();
    assert_eq!(store.purge(10).await.unwrap().deleted, 1, "the record is older than that");
    assert_eq!(store.purge(10).await.unwrap().deleted, 0);
    backend.step_clock(61_000_000).await;
    assert_eq!(store.purge(3).await.unwrap().deleted, 3);
    assert_eq!(store.purge(10).await.unwrap().deleted, 2);
}

struct Blocking(Sqlite);

impl InboxBackend for Blocking {
    type Inbox = inbox::Database;
    type Admin = Store;

    async fn create() -> Self {
        Self(shop())
    }

    async fn open(&self) -> inbox::Database {
        let database = inbox::Database::open(path(&self.0)).expect("opened");
        database.with_clock(Clock::new(self.0.now())).with_patience(PATIENCE)
    }

    async fn admin(&self) -> Store {
        hapax_verify::conformance::Backend::open(&self.0, Faults::default()).await
    }

    async fn act(tx: &mut inbox::Transaction, effect: &str) {
        tx.execute("INSERT INTO effects VALUES (?1)", [effect]).expect("written");
    }

    fn emit(tx: &mut inbox::Transaction, event: Event) {
        tx.emit(event);
    }

    async fn effects(&self) -> Vec<String> {
        effects(&self.0)
    }

    async fn events(&self) -> i64 {
        events(&self.0)
    }

    async fn dead(&self) -> Vec<(String, String)> {
        dead(&self.0)
    }

    async fn step_clock(&self, micros: i64) {
        self.0.move_clock(micros);
    }
}

#[cfg(feature = "sqlx")]
struct Pooled(Sqlite);

#[cfg(feature = "sqlx")]
impl InboxBackend for Pooled {
    type Inbox = hapax_sqlite::sqlx::Database;
    type Admin = Store;

    async fn create() -> Self {
        Self(shop())
    }

    async fn open(&self) -> Self::Inbox {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path(&self.0));
        let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(20);
        let pool = pool.connect_lazy_with(options.busy_timeout(PATIENCE));
        let database = hapax_sqlite::sqlx::Database::new(pool);
        database.with_clock(Clock::new(self.0.now())).with_patience(PATIENCE)
    }

    async fn admin(&self) -> Store {
        hapax_verify::conformance::Backend::open(&self.0, Faults::default()).await
    }

    async fn act(tx: &mut <Self::Inbox as Inbox>::Transaction, effect: &str) {
        let insert = sqlx::query("INSERT INTO effects VALUES (?1)").bind(effect.to_owned());
        insert.execute(&mut **tx).await.expect("written");
    }

    fn emit(tx: &mut <Self::Inbox as Inbox>::Transaction, event: Event) {
        tx.emit(event);
    }

    async fn effects(&self) -> Vec<String> {
        effects(&self.0)
    }

    async fn events(&self) -> i64 {
        events(&self.0)
    }

    async fn dead(&self) -> Vec<(String, String)> {
        dead(&self.0)
    }

    async fn step_clock(&self, micros: i64) {
        self.0.move_clock(micros);
    }
}

fn shop() -> Sqlite {
    let sqlite = Sqlite::new();
    let mut connection = sqlite.client();
    connection.pragma_update(None, "journal_mode", "WAL").expect("set");
    hapax_sqlite::migrate(&mut connection).expect("migrated");
    connection.execute_batch("CREATE TABLE effects (name TEXT)").expect("created");
    sqlite
}

fn path(sqlite: &Sqlite) -> PathBuf {
    PathBuf::from(sqlite.client().path().expect("it is a file"))
}

fn effects(sqlite: &Sqlite) -> Vec<String> {
    let connection = sqlite.client();
    let mut read = connection.prepare("SELECT name FROM effects").expect("read");
    let rows = read.query_map([], |row| row.get(0)).expect("read");
    rows.map(|row| row.expect("read")).collect()
}

fn events(sqlite: &Sqlite) -> i64 {
    let count = "SELECT count(*) FROM hapax_outbox";
    sqlite.client().query_row(count, [], |row| row.get(0)).expect("counted")
}

fn dead(sqlite: &Sqlite) -> Vec<(String, String)> {
    let connection = sqlite.client();
    let text = "SELECT message_id, reason FROM hapax_inbox_dead_readable ORDER BY 1";
    let mut read = connection.prepare(text).expect("read");
    let rows = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
    rows.map(|row| row.expect("read")).collect()
}
