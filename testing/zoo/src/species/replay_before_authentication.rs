//! Looks among its answers before it asks who is there, and replays to anybody.

use futures_util::future::BoxFuture;
use std::{future::ready, sync::Arc};

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, conduct::respond};

pub(super) const SPECIES: Species = Species::broken(
    "replay-before-authentication",
    "looks among its answers before it asks who is there, and replays to anybody",
    &["V09"],
    || Arc::new(ReplayBeforeAuthentication),
);

#[derive(Debug)]
struct ReplayBeforeAuthentication;

impl Conduct for ReplayBeforeAuthentication {
    fn respond<'a>(
        &'a self,
        enclosure: &'a Arc<Enclosure>,
        submission: Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        let Ok(key) = self.key(&submission.headers) else {
            return Box::pin(respond(self, enclosure, submission));
        };
        let (known, text) = (format!(" {} {key}", submission.path), submission.text());
        let is_nobody = self.principal(&submission).is_err();
        let kept = enclosure.keys.all().iter().find_map(|(name, kept)| {
            let is_it = is_nobody && name.ends_with(&known) && kept.fingerprint == text;
            kept.response.clone().filter(|_| is_it)
        });
        match kept {
            Some(kept) => Box::pin(ready(self.replay(kept))),
            None => Box::pin(respond(self, enclosure, submission)),
        }
    }
}
