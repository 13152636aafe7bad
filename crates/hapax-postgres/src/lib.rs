//! The PostgreSQL store of Hapax: coalesced multi-row writes on few connections.
//!
//! Everything is in schema `hapax`: one slim table of operations, in which uniqueness lives and each
//! outcome stands in the row of its operation. People read the views `hapax.operations_readable` and `hapax.notes_readable`.
//!
//! - `store`: [`Store`] and [`Options`]; which connection does what;
//! - `commit` and `batch`: a batch as one statement, and its answers;
//! - `row`, `answer` and `list`: reading; `notes`: what people did to records;
//! - `overdue`: finding abandoned records, and `retire`: purging, both without an index beside the key
//!   (`heap_lap` walks);
//! - `transaction`: the same promise inside the caller's own transaction, with its own pool
//!   (features `deadpool`, `sqlx` and `sqlx-0_8`; SQL functions for every other language);
//! - `inbox`: what became of messages, in the transaction of their effect;
//! - `outbox`: [`Outbox`], the log of events as a relay reads it;
//! - `tail`: [`tail::Tail`], the same log followed by logical replication (feature `tail`);
//! - `watch`: hints between processes;
//! - `connect`: [`Address`], the one way to a server, its encryption and passwords;
//! - `server`: whether a server can be used at all; `connection`: sessions, reconnecting; `migrate`: the schema; `error`: what failures mean.
//!
//! PostgreSQL 14 or newer. The clock of the database, `hapax.clock()`, is the only clock. A commit
//! is believed when the server says so under its own `synchronous_commit`, which is raised to `on`
//! where it was `off`; whether a standby has it too is the server's configuration.

#![cfg_attr(
    all(feature = "sqlx", feature = "sqlx-0_8"),
    expect(clippy::duplicate_mod, reason = "one source for both versions of the driver")
)]

mod answer;
mod batch;
mod clock_mark;
mod commit;
mod connect;
mod connection;
mod data_keys;
mod error;
mod heap_lap;
mod inbox;
mod incarnation;
mod list;
mod migrate;
mod notes;
mod outbox;
mod overdue;
mod retire;
mod row;
mod server;
mod session;
#[cfg(feature = "sqlx")]
#[path = "sqlx"]
mod sqlx_0_9 {
    use sqlx as driver;

    mod inbox;
    mod session;
    pub mod transaction;
}
#[cfg(feature = "sqlx-0_8")]
#[path = "sqlx"]
mod sqlx_0_8 {
    #[path = "driver_0_8.rs"]
    mod driver;
    mod inbox;
    mod session;
    pub mod transaction;
}
mod steps;
mod store;
#[cfg(feature = "tail")]
pub mod tail;
#[cfg(any(feature = "deadpool", feature = "sqlx", feature = "sqlx-0_8"))]
pub mod transaction;
mod watch;

pub use self::{
    connect::{
        Address, AddressError, ConnectFailure, EncryptedStream, PasswordAdvice, PasswordOrigin,
        PostgresTls, TlsFailure, TlsHandshake,
    },
    error::OpenError,
    migrate::{VERSION, schema_version, script},
    outbox::{Outbox, OutboxOptions},
    store::{Options, Store},
};
