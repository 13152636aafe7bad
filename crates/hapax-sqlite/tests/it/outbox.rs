//! The store as the log a relay reads passes the suite for all of them.

use hapax_core::outbox::Event;
use hapax_sqlite::{Options, Store, emit};
use hapax_verify::conformance::outbox::OutboxBackend;

use crate::backend::Sqlite;

hapax_verify::outbox_conformance!(Log);

struct Log(Sqlite);

impl Log {
    /// Emits these in a transaction of a connection of its own, as the program the file belongs to
    /// does; keys in any order, because there is one writer.
    fn transact(&self, events: &[Event], commits: bool) {
        let mut connection = self.0.client();
        connection.busy_timeout(Options::BUSY_MAX).expect("it is set");
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior).expect("it begins");
        for event in events {
            emit(&transaction, event).expect("it is written");
        }
        if commits {
            transaction.commit().expect("it commits");
        } else {
            transaction.rollback().expect("it is taken back");
        }
    }
}

impl OutboxBackend for Log {
    type Outbox = Store;

    async fn create() -> Self {
        let sqlite = Sqlite::new();
        drop(sqlite.store());
        Self(sqlite)
    }

    async fn open(&self) -> Store {
        // As patient as those who emit: SQLite is not fair to whoever waits for its lock.
        let options = Options { busy: Options::BUSY_MAX, ..self.0.options() };
        Store::open(self.0.path(), options).expect("the store opens")
    }

    async fn emit(&self, events: Vec<Event>) {
        self.transact(&events, true);
    }

    async fn roll_back(&self, events: Vec<Event>) {
        self.transact(&events, false);
    }

    async fn step_clock(&self, micros: i64) {
        self.0.move_clock(micros);
    }

    async fn turn_over(&self) {}
}
