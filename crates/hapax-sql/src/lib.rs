//! What Hapax says to any SQL database, whichever it is and whichever driver speaks to it.
//!
//! A driver implements [`Session`]: a statement with its [`Value`]s goes out, [`ResultRow`]s come back,
//! or a [`TransactionFault`]. The conversations are written once on top of it, over what each database
//! has to be told in its own words. A new database is its statements and a driver.
//!
//! - `session`: [`Session`] and [`Statement`]; `value`: what goes out; `row`: what comes back;
//! - `fault`: why there is no answer, and what that means before a commit, in one and without one;
//! - [`clock_mark`](clock_mark()): how far a clock is trusted, as columns;
//! - [`inbox`]: the conversation about messages; [`operation`]: about an operation in its caller's transaction.

pub mod inbox;
pub mod operation;

mod clock_mark;
mod fault;
mod row;
mod session;
mod value;

pub use self::{
    clock_mark::clock_mark,
    fault::TransactionFault,
    row::{ResultRow, TextOrBytes},
    session::{Session, Statement},
    value::Value,
};
