//! What follows a failure.

use std::time::Duration;

use hapax_zoo::{InducedFailure, RunningSpecies, Species};

use super::{Demonstration, in_turn};
use crate::client::{Ask, MARKER, Told};

pub(super) const ALL: &[Demonstration] = &[
    ("stores-500", |species| Box::pin(stores_500(species))),
    ("frees-key-after-500", |species| Box::pin(frees_key_after_500(species))),
    ("reaper-frees-stuck-keys", |species| Box::pin(reaper_frees_stuck_keys(species))),
    ("invalid-body-burns-key", |species| Box::pin(invalid_body_burns_key(species))),
];

async fn failed_then_retried(species: &Species, failure: InducedFailure) -> (RunningSpecies, Told) {
    let running = species.start().await.unwrap();
    running.fail_next(failure);
    let first = Ask::with_key("k-1").send(running.address).await;
    assert!([500, 503].contains(&first.status), "{}: {first:?}", species.name);
    let retry = Ask::with_key("k-1").send(running.address).await;
    (running, retry)
}

async fn stores_500(species: &Species) -> bool {
    let (running, retry) = failed_then_retried(species, InducedFailure::BeforeEffect).await;
    retry.status == 500 && running.effects("payments", MARKER) == 0
}

async fn frees_key_after_500(species: &Species) -> bool {
    let (running, retry) = failed_then_retried(species, InducedFailure::AfterEffect).await;
    retry.status == 201 && running.effects("payments", MARKER) == 2
}

async fn reaper_frees_stuck_keys(species: &Species) -> bool {
    let (running, _) = failed_then_retried(species, InducedFailure::AfterEffect).await;
    let before = running.effects("payments", MARKER);
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ask::with_key("k-1").send(running.address).await;
    (before, running.effects("payments", MARKER)) == (1, 2)
}

async fn invalid_body_burns_key(species: &Species) -> bool {
    let invalid = Ask::with_key("k-1").body("{}");
    let (running, first, second) = in_turn(species, invalid, Ask::with_key("k-1")).await;
    assert_eq!(first.status, 400, "{}", species.name);
    second.status == 422 && running.effects("payments", MARKER) == 0
}
