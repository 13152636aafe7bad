//! An operation in its caller's transaction: the conversation, in any SQL database.
//!
//! Nothing is written before the end: [`enter`](unit::enter) takes the operation's lock and reads its record,
//! `hapax_core::decide` says what that means, and [`leave`](unit::leave) writes the record. A record that is
//! there by then is an error, so that the commit behind it comes to nothing.
//!
//! - `unit`: what is decided, whatever the database is;
//! - `record`: [`OperationRecord`], how a kind of database finds, locks and writes a record;
//! - `statements`: [`OperationStatements`], what a database that does so by single statements has to be told in its
//!   own words; `locked_record`: [`LockedRecord`], how it is told; `row`: a record as it comes back from there.

pub mod unit;

mod locked_record;
mod record;
mod row;
mod statements;

pub use self::{
    locked_record::LockedRecord,
    record::{KeySeen, OperationRecord},
    row::stored_row,
    statements::OperationStatements,
    unit::ForOperation,
};
