//! Keeps keys without what they were for, and answers a refund with a payment.

use crate::{Conduct, Species, Submission};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "route-blind",
    "keeps keys without what they were for, and answers a refund with a payment",
    &["V07"],
    || Arc::new(RouteBlind),
);

#[derive(Debug)]
struct RouteBlind;

impl Conduct for RouteBlind {
    fn name(&self, submission: &Submission) -> String {
        format!("{} {}", submission.principal, submission.key)
    }
}
