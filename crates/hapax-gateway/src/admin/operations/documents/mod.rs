//! The JSON documents of the operations API, for whoever answers with them and whoever reads them.
//!
//! - [`ListingDocument`], [`ShownDocument`] and [`ExplanationDocument`] are what is told about operations;
//! - [`ReleaseDocument`] and [`Resolve`] are what a person sends to have one changed;
//! - [`ChangedDocument`] says what was done, [`ForeseenDocument`] what would have been.
//!
//! Instants are the store's, written as RFC 3339 in UTC.

mod change;
mod listing;
mod outcome;
mod record;

pub use self::{
    change::{ChangedDocument, ForeseenDocument, FoundDocument, ReleaseDocument, Resolve},
    listing::{ListedDocument, ListingDocument, OperationDocument},
    outcome::{GivenOutcome, HeaderDocument, StoredOutcome},
    record::{ExplanationDocument, MomentDocument, NoteDocument, RecordDocument, ShownDocument},
};
