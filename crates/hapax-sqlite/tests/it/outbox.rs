//! The store as the log a relay reads passes the suite for all of them.

use hapax_core::outbox::Event;
use hapax_sqlite::{Store, emit};
use hapax_verify::conformance::outbox::Backend;

use crate::backend::Sqlite;

hapax_verify::outbox_conformance!(Log);

struct Log(Sqlite);

impl Log {
    /// Emits these in a transaction of a connection of its own, as the program the file belongs to
    /// does; keys in any order, because there is one writer.
    fn transact(&self, events: &[Event], commits: bool) {
        let mut connection = self.0.client();
        connection.busy_timeout(std::time::Duration::from_secs(60)).expect("it is set");
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

impl Backend for Log {
    type Outbox = Store;

    async fn create() -> Self {
        let sqlite = Sqlite::new();
        drop(sqlite.store());
        Self(sqlite)
    }

    async fn open(&self) -> Store {
        self.0.store()
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
