//! Acts on a body that ended before its length, as far as it can be understood.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, conduct::respond};

pub(super) const SPECIES: Species = Species::broken(
    "cut-body-executed",
    "acts on a body that ended before its length, as far as it can be understood",
    &["V13"],
    || Arc::new(CutBodyExecuted),
);

#[derive(Debug)]
struct CutBodyExecuted;

impl Conduct for CutBodyExecuted {
    fn takes_cut_bodies(&self) -> bool {
        true
    }

    fn respond<'a>(
        &'a self,
        enclosure: &'a Arc<Enclosure>,
        mut submission: Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        let text = submission.text();
        for end in ["", "}", "\"}"] {
            let whole = Bytes::from(format!("{text}{end}"));
            if submission.order().is_err() {
                submission.body = whole;
            }
        }
        Box::pin(respond(self, enclosure, submission))
    }
}
