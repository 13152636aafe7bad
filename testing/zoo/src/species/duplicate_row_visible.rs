//! Writes the row of a duplicate before it finds the key, and takes it back later.

use futures_util::future::BoxFuture;
use std::sync::Arc;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, conduct::told};

pub(super) const SPECIES: Species = Species::broken(
    "duplicate-row-visible",
    "writes the row of a duplicate before it finds the key, and takes it back later",
    &["V29"],
    || Arc::new(DuplicateRowVisible),
);

#[derive(Debug)]
struct DuplicateRowVisible;

impl Conduct for DuplicateRowVisible {
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(async move {
            if let Some(told) = told(self, self.claim(enclosure, submission)) {
                if let Ok(wanted) = submission.order() {
                    let effects = &enclosure.effects;
                    let row = effects.add(submission.kind(), &wanted.marker, wanted.amount);
                    enclosure.pause().await;
                    effects.remove(&row.id);
                }
                return told;
            }
            let run = self.execute(enclosure, submission).await;
            self.settle(enclosure, submission, &run);
            run.now
        })
    }
}
