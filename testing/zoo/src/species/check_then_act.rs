//! Looks for the key, acts, and only then writes it: two that look at once both act.

use futures_util::future::BoxFuture;
use std::sync::Arc;

use crate::{Conduct, Enclosure, KnownKey, PlainResponse, Species, Submission, conduct::told};

pub(super) const SPECIES: Species = Species::broken(
    "check-then-act",
    "looks for the key, acts, and only then writes it: two that look at once both act",
    &["V02", "V03", "V14", "V16"],
    || Arc::new(CheckThenAct),
);

#[derive(Debug)]
struct CheckThenAct;

impl Conduct for CheckThenAct {
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(async move {
            let (name, fingerprint) = (submission.name(), submission.text());
            if let Some(told) = told(self, enclosure.keys.look(&name, &fingerprint)) {
                return told;
            }
            let run = self.execute(enclosure, submission).await;
            if let Some(response) = run.later {
                enclosure.keys.put(&name, KnownKey::finished(fingerprint, response));
            }
            run.now
        })
    }
}
