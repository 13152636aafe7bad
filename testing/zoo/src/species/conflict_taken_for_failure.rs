//! Stands behind a client that takes 409 for a failure and tries again with a new key.

use futures_util::future::BoxFuture;
use std::sync::Arc;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, conduct::answer};

pub(super) const SPECIES: Species = Species::broken(
    "conflict-taken-for-failure",
    "stands behind a client that takes 409 for a failure and tries again with a new key",
    &["V02", "V03", "V14", "V16"],
    || Arc::new(ConflictTakenForFailure),
);

#[derive(Debug)]
struct ConflictTakenForFailure;

impl Conduct for ConflictTakenForFailure {
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(async move {
            let response = answer(self, enclosure, submission).await;
            if response.status != 409 {
                return response;
            }
            let mut again = submission.clone();
            again.key = format!("{} again {}", submission.key, submission.connection);
            answer(self, enclosure, &again).await
        })
    }
}
