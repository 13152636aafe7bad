//! The JSON documents of the operations API, for whoever answers with them and whoever reads them.
//!
//! - [`Listing`], [`Shown`] and [`Explanation`] are what is told about operations;
//! - [`Release`] and [`Resolve`] are what a person sends to have one changed;
//! - [`Changed`] says what was done, [`Foreseen`] what would have been.
//!
//! Instants are the store's, written as RFC 3339 in UTC.

mod change;
mod listing;
mod outcome;
mod shown;

pub use self::{
    change::{Changed, Foreseen, Found, Release, Resolve},
    listing::{Listed, Listing, Operation},
    outcome::{GivenOutcome, Header, StoredOutcome},
    shown::{Explanation, Moment, Note, Record, Shown},
};
