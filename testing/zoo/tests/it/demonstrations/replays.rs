//! What a retry is told.

use hapax_zoo::Species;
use serde_json::Value;

use super::{Demonstration, in_turn};
use crate::client::{Ask, MARKER, Told};

pub(super) const ALL: &[Demonstration] = &[
    ("marker-without-result", |species| Box::pin(marker_without_result(species))),
    ("replay-reordered", |species| Box::pin(replay_reordered(species))),
    ("replay-with-new-id", |species| Box::pin(replay_with_new_id(species))),
    ("replay-with-new-date", |species| Box::pin(replay_with_new_date(species))),
    ("replay-with-other-status", |species| Box::pin(replay_with_other_status(species))),
    ("replay-cut-at-64-kib", |species| Box::pin(replay_cut_at_64_kib(species))),
    ("stores-cookie", |species| Box::pin(stores_cookie(species))),
    ("stores-hop-by-hop", |species| Box::pin(stores_hop_by_hop(species))),
];

/// The answer and its replay, where there was one effect.
async fn replayed(species: &Species) -> Option<(Told, Told)> {
    let ask = Ask::with_key("k-1");
    let (running, first, second) = in_turn(species, ask.clone(), ask).await;
    (running.effects("payments", MARKER) == 1).then_some((first, second))
}

fn json(told: &Told) -> Value {
    serde_json::from_str(&told.text).unwrap()
}

async fn marker_without_result(species: &Species) -> bool {
    replayed(species).await.is_some_and(|(_, replay)| replay.status == 409)
}

async fn replay_reordered(species: &Species) -> bool {
    let Some((first, replay)) = replayed(species).await else { return false };
    first.text != replay.text && json(&first) == json(&replay)
}

async fn replay_with_new_id(species: &Species) -> bool {
    let Some((first, replay)) = replayed(species).await else { return false };
    json(&first)["id"] != json(&replay)["id"]
}

async fn replay_with_new_date(species: &Species) -> bool {
    let Some((first, replay)) = replayed(species).await else { return false };
    first.text != replay.text && json(&replay)["answered_at"].is_string()
}

async fn replay_with_other_status(species: &Species) -> bool {
    let Some((first, replay)) = replayed(species).await else { return false };
    (first.status, replay.status) == (201, 200) && first.text == replay.text
}

async fn replay_cut_at_64_kib(species: &Species) -> bool {
    let ask = Ask::with_key("k-1").on("/reports");
    let (_running, first, second) = in_turn(species, ask.clone(), ask).await;
    second.text.len() == 64 * 1024 && first.text.starts_with(&second.text)
}

async fn stores_cookie(species: &Species) -> bool {
    let Some((first, replay)) = replayed(species).await else { return false };
    replay.headers.get("set-cookie").is_some_and(|cookie| first.headers["set-cookie"] == cookie)
}

async fn stores_hop_by_hop(species: &Species) -> bool {
    let Some((_, replay)) = replayed(species).await else { return false };
    replay.headers.contains_key("keep-alive") && replay.headers.contains_key("x-upstream")
}
