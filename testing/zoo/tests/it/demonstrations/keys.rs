//! Which keys are one.

use futures_util::stream::{self, StreamExt};
use hapax_zoo::Species;

use super::{Demonstration, acts_on_second, in_turn};
use crate::client::{Ask, MARKER, body, hook, http1, http2};

pub(super) const ALL: &[Demonstration] = &[
    ("no-idempotency", |species| Box::pin(no_idempotency(species))),
    ("keys-per-instance", |species| Box::pin(keys_per_instance(species))),
    ("no-mismatch-check", |species| Box::pin(no_mismatch_check(species))),
    ("mismatch-by-length", |species| Box::pin(mismatch_by_length(species))),
    ("key-truncated", |species| Box::pin(key_truncated(species))),
    ("key-case-folded", |species| Box::pin(key_case_folded(species))),
    ("key-whitespace-removed", |species| Box::pin(key_whitespace_removed(species))),
    ("several-keys-accepted", |species| Box::pin(several_keys_accepted(species))),
    ("missing-key-accepted", |species| Box::pin(missing_key_accepted(species))),
    ("bad-key-500", |species| Box::pin(bad_key_500(species))),
    ("tenant-blind", |species| Box::pin(tenant_blind(species))),
    ("route-blind", |species| Box::pin(route_blind(species))),
    ("client-date-in-key", |species| Box::pin(client_date_in_key(species))),
    ("forwarded-for-in-key", |species| Box::pin(forwarded_for_in_key(species))),
    ("replay-before-authentication", |species| Box::pin(replay_before_authentication(species))),
    ("revoked-token-replays", |species| Box::pin(revoked_token_replays(species))),
    ("http2-bypasses-check", |species| Box::pin(http2_bypasses_check(species))),
    ("reordered-json-500", |species| Box::pin(reordered_json_500(species))),
    ("reads-keys-from-a-replica", |species| Box::pin(reads_keys_from_a_replica(species))),
    ("forgets-after-1000-keys", |species| Box::pin(forgets_after_1000_keys(species))),
    ("forgets-before-its-time", |species| Box::pin(forgets_before_its_time(species))),
];

async fn no_idempotency(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let ask = Ask::with_key("k-1");
    let first = ask.send(running.address).await;
    // Longer than any replica is behind.
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    let second = ask.send(running.address).await;
    first.text != second.text && running.effects("payments", MARKER) == 2
}

async fn keys_per_instance(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    Ask::with_key("k-1").send(running.address).await;
    Ask::with_key("k-1").send(running.also).await;
    running.effects("payments", MARKER) == 2
}

async fn no_mismatch_check(species: &Species) -> bool {
    let second = Ask::with_key("k-1").body(body(7, MARKER));
    let (_running, first, second) = in_turn(species, Ask::with_key("k-1"), second).await;
    second.status == 201 && first.text == second.text
}

async fn mismatch_by_length(species: &Species) -> bool {
    let second = Ask::with_key("k-1").body(body(200, MARKER));
    let (running, first, second) = in_turn(species, Ask::with_key("k-1"), second).await;
    let longer = Ask::with_key("k-1").body(body(1000, MARKER)).send(running.address).await;
    second.text == first.text && longer.status == 422
}

/// Whether two keys are one.
async fn are_one(species: &Species, one: &str, other: &str) -> bool {
    let second = Ask::with_key(other);
    let (running, first, second) = in_turn(species, Ask::with_key(one), second).await;
    assert_eq!((first.status, second.status), (201, 201), "{}: {second:?}", species.name);
    running.effects("payments", MARKER) == 1 && first.text == second.text
}

async fn key_truncated(species: &Species) -> bool {
    let (one, other) = (format!("{}-1", "k".repeat(36)), format!("{}-2", "k".repeat(36)));
    are_one(species, &one, &other).await
}

async fn key_case_folded(species: &Species) -> bool {
    are_one(species, "key-A", "key-a").await
}

async fn key_whitespace_removed(species: &Species) -> bool {
    are_one(species, "\"k 1\"", "\"k1\"").await
}

async fn several_keys_accepted(species: &Species) -> bool {
    let mut ask = Ask::with_key("k-1");
    ask.keys.push("k-2".to_owned());
    let running = species.start().await.unwrap();
    ask.send(running.address).await.status == 201
}

async fn missing_key_accepted(species: &Species) -> bool {
    let ask = Ask { keys: Vec::new(), ..Ask::with_key("") };
    let running = species.start().await.unwrap();
    ask.send(running.address).await.status == 201 && running.effects("payments", MARKER) == 1
}

async fn bad_key_500(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    Ask::with_key(&"k".repeat(300)).send(running.address).await.status == 500
}

async fn tenant_blind(species: &Species) -> bool {
    let second = Ask::with_key("k-1").by(Some("bob"));
    let (_running, first, second) = in_turn(species, Ask::with_key("k-1"), second).await;
    second.status == 201 && first.text == second.text
}

async fn route_blind(species: &Species) -> bool {
    let second = Ask::with_key("k-1").on("/refunds");
    let (_running, first, second) = in_turn(species, Ask::with_key("k-1"), second).await;
    second.status == 201 && first.text == second.text
}

async fn client_date_in_key(species: &Species) -> bool {
    let first = Ask::with_key("k-1").header("date", "Thu, 19 Nov 2026 10:00:00 GMT");
    let second = Ask::with_key("k-1").header("date", "Thu, 19 Nov 2026 10:00:30 GMT");
    acts_on_second(species, first, second).await
}

async fn forwarded_for_in_key(species: &Species) -> bool {
    let second = Ask::with_key("k-1").header("x-forwarded-for", "192.0.2.7");
    acts_on_second(species, Ask::with_key("k-1"), second).await
}

async fn replay_before_authentication(species: &Species) -> bool {
    let second = Ask::with_key("k-1").by(None);
    let (_running, first, second) = in_turn(species, Ask::with_key("k-1"), second).await;
    second.status == 201 && first.text == second.text
}

async fn revoked_token_replays(species: &Species) -> bool {
    let second = Ask::with_key("k-1").by(Some("revoked"));
    let (running, first, second) = in_turn(species, Ask::with_key("k-1"), second).await;
    let new = Ask::with_key("k-2").by(Some("revoked")).send(running.address).await;
    let nobody = Ask::with_key("k-1").by(None).send(running.address).await;
    assert_eq!(new.status, 401, "{}", species.name);
    second.text == first.text && nobody.status == 401
}

async fn http2_bypasses_check(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let (ask, client) = (Ask::with_key("k-1"), http2());
    ask.send(running.address).await;
    ask.send(running.address).await;
    if running.effects("payments", MARKER) != 1 {
        return false;
    }
    ask.send_by(&client, running.address).await;
    running.effects("payments", MARKER) == 2
}

async fn reordered_json_500(species: &Species) -> bool {
    let reordered = format!(r#"{{"ref":"{MARKER}","currency":"EUR","amount":100}}"#);
    let second = Ask::with_key("k-1").body(reordered);
    let (_running, _first, second) = in_turn(species, Ask::with_key("k-1"), second).await;
    second.status == 500
}

async fn reads_keys_from_a_replica(species: &Species) -> bool {
    let ask = Ask::with_key("k-1");
    acts_on_second(species, ask.clone(), ask).await
}

async fn forgets_after_1000_keys(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let (to, client) = (running.address, http1());
    hook(to, "slow?ms=0").await;
    let others = stream::iter(0..=1000).map(|number| {
        let (ask, client) = (Ask::with_key(&format!("other-{number}")), &client);
        async move { ask.body(body(1, "others")).send_by(client, to).await }
    });
    Ask::with_key("k-1").send(to).await;
    let others: Vec<_> = others.buffer_unordered(16).collect().await;
    assert!(others.iter().all(|told| told.status == 201), "{}", species.name);
    Ask::with_key("k-1").send(to).await;
    running.effects("payments", MARKER) == 2
}

async fn forgets_before_its_time(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    Ask::with_key("k-1").send(running.address).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    Ask::with_key("k-1").send(running.address).await;
    running.effects("payments", MARKER) == 2
}
