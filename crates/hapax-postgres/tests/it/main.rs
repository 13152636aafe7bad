//! The store against a real server: the suite for all stores, and what is PostgreSQL's own.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests: what they did not expect ends them"
)]

mod answers;
mod backend;
mod complaints;
mod connect;
mod failures;
mod functions;
#[cfg(all(feature = "deadpool", feature = "sqlx", feature = "sqlx-0_8"))]
mod inbox;
mod natural;
mod natural_guards;
mod natural_ledger;
mod natural_locks;
mod natural_page;
mod natural_upsert;
mod outbox;
mod plans;
mod purging;
mod reference;
mod schema;
mod server;
mod strangers;
mod sweeping;
#[cfg(feature = "tail")]
mod tail;
mod tending;
#[cfg(all(feature = "deadpool", feature = "sqlx", feature = "sqlx-0_8"))]
mod transactions;
mod watching;

use backend::Postgres;

hapax_verify::conformance!(Postgres);
hapax_verify::data_key_conformance!(Postgres);

mod encrypted {
    use hapax_verify::conformance::Encrypted;

    use super::Postgres;

    hapax_verify::conformance!(Encrypted<Postgres>);
}
