//! An operation in its caller's transaction: the conversation, in any SQL database.
//!
//! Nothing is written before the end: [`enter`](unit::enter) takes the operation's lock and reads its record with
//! the statement that begins, `hapax_core::decide` says what that means, and [`leave`](unit::leave) writes the
//! record with the statement that commits. A record that is there by then is an error, so that the commit
//! behind it comes to nothing.
//!
//! - `statements`: [`OperationStatements`], what a database has to be told in its own words;
//! - `unit`: what is said; `row`: a record as it comes back.

pub mod unit;

mod row;
mod statements;

pub use self::{statements::OperationStatements, unit::ForOperation};
