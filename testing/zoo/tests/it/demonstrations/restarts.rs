//! What is left after an end of the process, for which it is enough that nothing of it goes on.

use std::{path::Path, time::Duration};

use hapax_zoo::{Options, RunningSpecies, Species};
use tempfile::TempDir;

use super::Demonstration;
use crate::client::{Ask, MARKER, Told};

pub(super) const ALL: &[Demonstration] = &[
    ("keys-in-memory", |species| Box::pin(keys_in_memory(species))),
    ("key-stored-after-effect", |species| Box::pin(key_stored_after_effect(species))),
    ("stuck-after-kill", |species| Box::pin(stuck_after_kill(species))),
];

async fn start(species: &Species, state: &Path) -> RunningSpecies {
    let state = Some(state.to_owned());
    species.start_with(Options { state, ..Options::default() }).await.unwrap()
}

/// Ends while this many handlers have come to where they are held, if they do, and tells what a
/// retry hears of the next.
async fn ended_at(species: &Species, handlers: usize) -> (RunningSpecies, Told, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let running = start(species, &state).await;
    let to = running.address;
    running.hold_after(handlers - 1);
    let first = tokio::spawn(async move { Ask::with_key("k-1").send(to).await });
    let come = running.handlers(handlers);
    let _ = tokio::time::timeout(Duration::from_millis(300), come).await;
    first.abort();
    drop(running);
    let running = start(species, &state).await;
    let told = Ask::with_key("k-1").send(running.address).await;
    (running, told, folder)
}

async fn keys_in_memory(species: &Species) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    for _ in 0..2 {
        let running = start(species, &state).await;
        Ask::with_key("k-1").send(running.address).await;
    }
    start(species, &state).await.effects("payments", MARKER) == 2
}

async fn key_stored_after_effect(species: &Species) -> bool {
    let (running, told, _folder) = ended_at(species, 2).await;
    told.status == 201 && running.effects("payments", MARKER) == 2
}

async fn stuck_after_kill(species: &Species) -> bool {
    let (running, told, _folder) = ended_at(species, 1).await;
    told.status == 409 && running.effects("payments", MARKER) == 0
}
