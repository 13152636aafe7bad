//! Keeps its effects on disk and its keys in memory, and has forgotten them after a restart.

use futures_util::future::BoxFuture;
use std::sync::Arc;

use crate::{Conduct, Enclosure, HandlerRun, Species, Submission};

pub(super) const SPECIES: Species = Species::broken(
    "keys-in-memory",
    "keeps its effects on disk and its keys in memory, and has forgotten them after a restart",
    &["V25"],
    || Arc::new(KeysInMemory),
)
.about_restarts();

#[derive(Debug)]
struct KeysInMemory;

impl Conduct for KeysInMemory {
    fn execute<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, HandlerRun> {
        Box::pin(async move {
            enclosure.pause().await;
            enclosure.effect(submission, None)
        })
    }
}
