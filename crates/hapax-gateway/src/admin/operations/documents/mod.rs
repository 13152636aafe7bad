//! What is told about operations, and what people send to have them changed.

mod change;
mod listing;
mod outcome;
mod record;

pub(super) use self::record::summary;
pub use self::{
    change::{ChangedDocument, ForeseenDocument, FoundDocument, ReleaseDocument, Resolve},
    listing::{ListedDocument, ListingDocument, OperationDocument},
    outcome::{GivenOutcome, HeaderDocument, StoredOutcome},
    record::{
        ExplanationDocument, MomentDocument, NoteDocument, RecordDocument, RequestDocument,
        ShownDocument, StepDocument,
    },
};
