//! What became of messages: the conversation, in any SQL database.
//!
//! - `statements`: [`InboxStatements`], what a database has to be told in its own words;
//! - `unit`: what is said in the transaction of an effect; `tables`: what is said outside of one;
//! - `admin`: what people are told, in the words of [`InboxAdminStatements`];
//! - `values`: what the statements take, in their order; `delegate`: the half of an `Inbox` that is the
//!   same for every driver.

pub mod admin;
pub mod tables;
pub mod unit;

mod admin_statements;
mod delegate;
mod statements;
mod values;

use hapax_core::{Salt, Timestamp};

pub use self::{
    admin_statements::InboxAdminStatements, statements::InboxStatements, unit::ForMessages,
};

/// How an inbox is spoken to.
#[derive(Debug, Clone, Copy)]
pub struct InboxContext {
    /// In these words.
    pub statements: &'static InboxStatements,
    /// What time it is, where the database has no clock of its own.
    pub now: Option<Timestamp>,
    /// What numbers the locks of records, where a transaction that writes is not alone anyway.
    pub salt: Option<Salt>,
}

/// How an inbox is spoken to for people.
#[derive(Debug, Clone, Copy)]
pub struct InboxAdminContext {
    /// In these words.
    pub statements: &'static InboxAdminStatements,
    /// What time it is, where the database has no clock of its own.
    pub now: Option<Timestamp>,
}

/// What the lock of a message's record is called; its kind is `message`.
pub fn lock_name(consumer: i32, message_id: &str) -> String {
    format!("{consumer}\n{message_id}")
}
