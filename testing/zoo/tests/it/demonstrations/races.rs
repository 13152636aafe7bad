//! What comes while the first is running.

use std::time::Duration;

use hapax_zoo::{RunningSpecies, Species};

use super::Demonstration;
use crate::client::{
    Ask, MARKER, Told, get, get_by, hook, http2, overlapping, read_answers, write,
};

pub(super) const ALL: &[Demonstration] = &[
    ("check-then-act", |species| Box::pin(check_then_act(species))),
    ("unique-violation-500", |species| Box::pin(unique_violation_500(species))),
    ("empty-200-in-flight", |species| Box::pin(empty_200_in_flight(species))),
    ("conflict-without-retry-after", |species| Box::pin(conflict_without_retry_after(species))),
    ("conflict-taken-for-failure", |species| Box::pin(conflict_taken_for_failure(species))),
    ("expiry-deletes-running-keys", |species| Box::pin(acts_beside_the_slow(species))),
    ("lease-without-fence", |species| Box::pin(acts_beside_the_slow(species))),
    ("proxy-resends-when-slow", |species| Box::pin(proxy_resends_when_slow(species))),
    ("claim-shared-by-connection", |species| Box::pin(claim_shared_by_connection(species))),
    ("pipelines-at-once", |species| Box::pin(pipelines_at_once(species))),
    ("duplicate-row-visible", |species| Box::pin(duplicate_row_visible(species))),
];

async fn race(species: &Species) -> (RunningSpecies, Told, Told) {
    let running = species.start().await.unwrap();
    let to = running.address;
    let ask = move || async move { Ask::with_key("k-1").send(to).await };
    let (first, second) = overlapping(&running, ask(), ask()).await;
    (running, first, second)
}

async fn check_then_act(species: &Species) -> bool {
    let (running, first, second) = race(species).await;
    running.effects("payments", MARKER) == 2 && (first.status, second.status) == (201, 201)
}

async fn unique_violation_500(species: &Species) -> bool {
    race(species).await.2.status == 500
}

async fn empty_200_in_flight(species: &Species) -> bool {
    let (_running, _first, second) = race(species).await;
    second.status == 200 && second.text.is_empty()
}

async fn conflict_without_retry_after(species: &Species) -> bool {
    let (_running, _first, second) = race(species).await;
    second.status == 409 && !second.headers.contains_key("retry-after")
}

async fn conflict_taken_for_failure(species: &Species) -> bool {
    let (running, _first, second) = race(species).await;
    running.effects("payments", MARKER) == 2 && second.status == 201
}

/// The second comes a while after the first, which is held.
async fn acts_beside_the_slow(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let to = running.address;
    let ask = move || async move { Ask::with_key("k-1").send(to).await };
    let late = async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        ask().await
    };
    overlapping(&running, ask(), late).await;
    running.effects("payments", MARKER) == 2
}

async fn proxy_resends_when_slow(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    hook(running.address, "slow?ms=200").await;
    let told = Ask::with_key("k-1").send(running.address).await;
    told.status == 201 && running.effects("payments", MARKER) == 2
}

async fn claim_shared_by_connection(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let (client, to) = (http2(), running.address);
    // So that there is a connection for both.
    get_by(&client, to, "/payments").await;
    let ask = |client| async move { Ask::with_key("k-1").send_by(&client, to).await };
    overlapping(&running, ask(client.clone()), ask(client)).await;
    running.effects("payments", MARKER) == 2
}

async fn pipelines_at_once(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let bytes = Ask::with_key("k-1").bytes().repeat(2);
    running.hold();
    let mut stream = write(running.address, &bytes).await;
    running.handlers(1).await;
    let _ = tokio::time::timeout(Duration::from_millis(300), running.handlers(2)).await;
    running.release();
    let answers = read_answers(&mut stream, 2).await;
    assert_eq!(answers.matches("HTTP/1.1 201").count(), 2, "{}: {answers}", species.name);
    running.effects("payments", MARKER) == 2
}

async fn duplicate_row_visible(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let to = running.address;
    let first = Ask::with_key("k-1").send(to).await;
    let before = running.handlers_so_far();
    running.hold();
    let second = tokio::spawn(async move { Ask::with_key("k-1").send(to).await });
    let come = running.handlers(before + 1);
    let _ = tokio::time::timeout(Duration::from_millis(300), come).await;
    let seen = get(to, &format!("/payments?ref={MARKER}")).await;
    running.release();
    let second = second.await.unwrap();
    let after = running.effects("payments", MARKER);
    let same = first.text == second.text && after == 1;
    same && seen.text.matches("\"id\"").count() == 2
}
