//! What all species do alike, whatever is wrong with them.

use futures_util::future::join_all;
use hapax_zoo::{SPECIES, Species};
use serde_json::Value;
use tokio::io::AsyncReadExt;

use crate::client::{Ask, MARKER, body, get, get_by, http2, write};

#[tokio::test(flavor = "multi_thread")]
async fn a_first_request_has_one_effect_and_is_told_so() {
    join_all(SPECIES.iter().map(first_request)).await;
}

async fn first_request(species: &'static Species) {
    let name = species.name;
    let running = species.start().await.unwrap();
    for (path, key) in [("/payments", "k-1"), ("/refunds", "k-2"), ("/reports", "\"k-3\"")] {
        let told = Ask::with_key(key).on(path).send(running.address).await;
        assert_eq!(told.status, 201, "{name}: {path}: {told:?}");
        let answer: Value = serde_json::from_str(&told.text).unwrap();
        assert_eq!(answer["ref"], MARKER, "{name}");
        assert_eq!(answer["amount"], 100, "{name}");
        assert_eq!(told.text.len() >= 1024 * 1024, path == "/reports", "{name}: {path}");
        assert_eq!(running.effects(&path[1..], MARKER), 1, "{name}: {path}");
        let id = answer["id"].as_str().unwrap();
        let one = get(running.address, &format!("{path}/{id}")).await;
        assert_eq!(serde_json::from_str::<Value>(&one.text).unwrap()["ref"], MARKER, "{name}");
        let all = get(running.also, &format!("{path}?ref={MARKER}")).await;
        let items: Value = serde_json::from_str(&all.text).unwrap();
        assert_eq!(items["items"].as_array().unwrap().len(), 1, "{name}: {path}");
        assert_eq!(items["items"][0]["id"], id, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_spoken_on_the_same_port() {
    join_all(SPECIES.iter().map(|species| async move {
        let running = species.start().await.unwrap();
        let client = http2();
        let told = Ask::with_key("k-1").send_by(&client, running.address).await;
        assert_eq!(told.status, 201, "{}: {told:?}", species.name);
        let items = get_by(&client, running.address, &format!("/payments?ref={MARKER}")).await;
        assert_eq!(items.status, 200, "{}", species.name);
        assert_eq!(running.effects("payments", MARKER), 1, "{}", species.name);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correct_one_keeps_the_whole_contract() {
    join_all(SPECIES.iter().filter(|species| !species.is_broken()).map(whole_contract)).await;
}

async fn whole_contract(species: &'static Species) {
    let name = species.name;
    let running = species.start().await.unwrap();
    let to = running.address;
    let first = Ask::with_key("k-1").send(to).await;
    assert!(first.headers.contains_key("set-cookie"), "{name}");
    for key in ["k-1", "\"k-1\""] {
        let replay = Ask::with_key(key).send(to).await;
        assert_eq!((replay.status, &replay.text), (201, &first.text), "{name}: {key}");
        assert_eq!(replay.headers["idempotent-replayed"], "true", "{name}");
        assert!(!replay.headers.contains_key("set-cookie"), "{name}");
    }
    let changed = Ask::with_key("k-1").body(body(101, MARKER)).send(to).await;
    assert_eq!(changed.status, 422, "{name}: {changed:?}");
    let by_bob = Ask::with_key("k-1").by(Some("bob")).body(body(100, "bobs")).send(to).await;
    assert_eq!(by_bob.status, 201, "{name}: {by_bob:?}");
    for token in [None, Some("revoked"), Some("mallory")] {
        assert_eq!(Ask::with_key("k-1").by(token).send(to).await.status, 401, "{name}: {token:?}");
    }
    let long = "k".repeat(256);
    let bad = ["\"\"", "\"open", "\"a\" \"b\"", "\"a\";v=1", "\"a\\n\"", &long];
    for key in bad {
        let told = Ask::with_key(key).send(to).await;
        assert_eq!(told.status, 400, "{name}: {key}: {told:?}");
    }
    for keys in [vec![], vec!["a".to_owned(), "a".to_owned()]] {
        let told = Ask { keys, ..Ask::with_key("") }.send(to).await;
        assert_eq!(told.status, 400, "{name}: {told:?}");
    }
    assert_eq!(Ask::with_key("k-9").body("{").send(to).await.status, 400, "{name}");
    assert_eq!(running.effects("payments", MARKER), 1, "{name}");
    assert_eq!(running.effects("payments", "bobs"), 1, "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_refused_by_every_reader_of_requests() {
    for name in ["honest", "pipelines-at-once"] {
        let running = Species::named(name).unwrap().start().await.unwrap();
        let mut stream = write(running.address, b"POST /payments\r\n\r\n").await;
        let mut told = String::new();
        stream.read_to_string(&mut told).await.unwrap();
        assert!(told.starts_with("HTTP/1.1 400"), "{name}: {told}");
    }
}
