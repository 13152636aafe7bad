//! Lets the unique violation of a duplicate become a 500.

use crate::{Conduct, PlainResponse, Species};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "unique-violation-500",
    "lets the unique violation of a duplicate become a 500",
    &["V02", "V03", "V16"],
    || Arc::new(UniqueViolation500),
);

#[derive(Debug)]
struct UniqueViolation500;

impl Conduct for UniqueViolation500 {
    fn in_flight(&self) -> PlainResponse {
        PlainResponse::problem(500, "duplicate key value violates unique constraint")
    }
}
