//! Stops with the connection of its client, and frees the key after the effect.

use futures_util::future::BoxFuture;
use std::sync::Arc;

use crate::{Conduct, Enclosure, HandlerRun, Species, Submission};

pub(super) const SPECIES: Species = Species::broken(
    "rolled-back-after-disconnect",
    "stops with the connection of its client, and frees the key after the effect",
    &["V11", "V15"],
    || Arc::new(RolledBackAfterDisconnect),
);

#[derive(Debug)]
struct RolledBackAfterDisconnect;

impl Conduct for RolledBackAfterDisconnect {
    fn is_detached(&self) -> bool {
        false
    }

    fn execute<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, HandlerRun> {
        Box::pin(async move {
            let name = submission.name();
            let mut claim = FreedOnDrop(enclosure, Some(&name));
            let run = enclosure.effect(submission, None);
            enclosure.pause().await;
            claim.1 = None;
            run
        })
    }
}

struct FreedOnDrop<'a>(&'a Enclosure, Option<&'a str>);

impl Drop for FreedOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.1 {
            self.0.keys.forget(name);
        }
    }
}
