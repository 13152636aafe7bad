//! The header for services whose effect is in a database: each request runs inside a transaction
//! that also stores its answer.
//!
//! The front is that of every layer; behind it there is no lease and no engine, but the handler's
//! own transaction, which it gets as [`Tx`].

mod error;
mod run;
mod tx;

pub use self::{error::TxError, run::SameTransaction, tx::Tx};
