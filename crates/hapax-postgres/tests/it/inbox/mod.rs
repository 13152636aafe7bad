//! What became of messages: the suite for all inboxes, through every driver.

mod isolation;

use std::marker::PhantomData;

use hapax_core::{Event, inbox::Inbox};
use hapax_postgres::Store;
use hapax_verify::conformance::{
    Backend as _,
    inbox::{EncryptedMessages, InboxBackend},
};

use crate::{
    backend::Postgres,
    transactions::doors::{Deadpool, Door, Sqlx, Sqlx08},
};

mod through_deadpool {
    use super::*;
    hapax_verify::inbox_conformance!(Effects<Deadpool>);
}

mod encrypted {
    use super::*;
    hapax_verify::inbox_conformance!(EncryptedMessages<Effects<Deadpool>>);
}

mod through_sqlx {
    use super::*;
    hapax_verify::inbox_conformance!(Effects<Sqlx>);
}

mod through_sqlx_0_8 {
    use super::*;
    hapax_verify::inbox_conformance!(Effects<Sqlx08>);
}

/// A database with a table of effects.
pub(crate) struct Effects<D> {
    postgres: Postgres,
    door: PhantomData<fn() -> D>,
}

impl<D: Door> InboxBackend for Effects<D> {
    type Inbox = D::Database;
    type Admin = Store;

    async fn create() -> Self {
        let postgres = Postgres::migrated().await;
        postgres.client().await.batch_execute("CREATE TABLE effects (name text)").await.unwrap();
        Self { postgres, door: PhantomData }
    }

    async fn open(&self) -> D::Database {
        D::open(&self.postgres.config(), None)
    }

    async fn admin(&self) -> Store {
        self.postgres.store().await
    }

    async fn act(tx: &mut <D::Database as Inbox>::Transaction, effect: &str) {
        D::write(tx, format!("INSERT INTO effects VALUES ('{effect}')")).await.unwrap();
    }

    fn emit(tx: &mut <D::Database as Inbox>::Transaction, event: Event) {
        D::emit(tx, event);
    }

    async fn effects(&self) -> Vec<String> {
        let rows = self.postgres.client().await.query("SELECT name FROM effects", &[]).await;
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    }

    async fn events(&self) -> i64 {
        self.postgres.number("SELECT count(*) FROM hapax.outbox").await
    }

    async fn dead(&self) -> Vec<(String, String)> {
        let text = "SELECT message_id, reason FROM hapax.inbox_dead_readable ORDER BY 1";
        let rows = self.postgres.client().await.query(text, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    async fn step_clock(&self, micros: i64) {
        self.postgres.step_clock(micros).await;
    }
}
