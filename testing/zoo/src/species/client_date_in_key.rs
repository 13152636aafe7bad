//! Keeps the date of the client with the key, and takes a retry of a later date for a new request.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "client-date-in-key",
    "keeps the date of the client with the key, and takes a retry of a later date for a new request",
    &["V30"],
    || Arc::new(ClientDateInKey),
);

#[derive(Debug)]
struct ClientDateInKey;

impl Conduct for ClientDateInKey {
    fn name(&self, submission: &Submission) -> String {
        format!("{} {:?}", submission.name(), submission.headers.get("date"))
    }
}
