//! The store through its public door: the suite for all stores, and what only this one can do.
#![expect(clippy::expect_used, clippy::panic, reason = "in a test, what was not expected ends it")]

mod backend;
mod calls;
mod closing;
mod copies;
mod equal;
mod guest;
mod inbox;
mod index;
mod natural;
mod opening;
mod outbox;
mod readable;
mod sharing;
mod transaction;

hapax_verify::conformance!(backend::Sqlite);
hapax_verify::data_key_conformance!(backend::Sqlite);

mod encrypted {
    use hapax_verify::conformance::Encrypted;

    use super::backend::Sqlite;

    hapax_verify::conformance!(Encrypted<Sqlite>);
}
