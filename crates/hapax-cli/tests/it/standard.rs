//! What draft-ietf-httpapi-idempotency-key-header-07 asks of a server, asked of the gateway.

use std::time::Duration;

use serde_json::Value;

use crate::{
    wire::{ROUTES, World, key, request},
    world::{Answer, Behaviour, Connection, Raw, Setup, Upstream, ask, post, until},
};

async fn get(world: &World, path: &str) -> Answer {
    world.ask(format!("GET {path} HTTP/1.1\r\nhost: gateway\r\n\r\n")).await
}

#[tokio::test]
async fn a_refusal_has_links_that_lead_to_its_explanation() {
    let world = World::start(ROUTES).await;
    world.ask(request("/pay", key("used"))).await;
    let other = request("/pay?other", key("used"));
    for (status, sent) in [(400, request("/pay", "")), (422, other)] {
        let answer = world.ask(sent).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        for member in ["type", "title", "detail"] {
            assert!(problem[member].is_string(), "{member}: {problem}");
        }
        let link = answer.header("link").unwrap();
        assert!(link.contains("rel=\"describedby\""), "{link}");
        let linked = link.trim_start_matches('<').split('>').next().unwrap();
        assert_eq!(Some(linked), problem["type"].as_str());
        let page = get(&world, linked).await;
        assert_eq!(page.status, 200, "{linked}");
        assert!(page.text().contains(&answer.code().unwrap()), "{page:?}");
    }
}

#[tokio::test]
async fn the_policy_can_be_read_before_anything_is_sent() {
    let world = World::start(ROUTES).await;
    let policy: Value =
        serde_json::from_slice(&get(&world, "/.well-known/idempotency").await.body).unwrap();
    let text = policy.to_string();
    for published in ["retention_seconds", "scope", "compared", "in_flight", "results", "1 to 255"]
    {
        assert!(text.contains(published), "{published}: {text}");
    }
    let openapi = get(&world, "/.well-known/idempotency/openapi.json").await;
    assert_eq!(openapi.status, 200);
}

#[tokio::test]
async fn a_retry_during_the_first_is_a_conflict_and_another_request_is_not() {
    let takes = Duration::from_secs(2);
    let upstream = Upstream::start(Behaviour { takes, ..Behaviour::default() }).await;
    let gateway = Setup::new(upstream.address).start().await;
    let first = tokio::spawn(ask(gateway.address, post("/pay", "k", "ten")));
    until("the first to be at work", async || upstream.total() == 1).await;
    let retry = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    assert_eq!((retry.status, retry.code().as_deref()), (409, Some("key-in-flight")));
    assert!(retry.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    let other = ask(gateway.address, post("/pay", "k", "eleven")).await.unwrap();
    assert_eq!((other.status, other.code().as_deref()), (422, Some("key-reused")));
    let first = first.await.unwrap().unwrap();
    assert_eq!(first.status, 201);
    let replay = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    assert_eq!((&replay.body, replay.is_replay()), (&first.body, true));
    assert_eq!(upstream.total(), 1);
}

#[tokio::test]
async fn a_retry_hears_the_result_whether_it_was_a_success_or_an_error() {
    let upstream = Raw::start(|head| {
        let status = head.split(['/', ' ']).nth(2).unwrap();
        format!("HTTP/1.1 {status} x\r\nx-own: 1\r\ncontent-length: 4\r\n\r\nsaid").into_bytes()
    })
    .await;
    let gateway = Setup::new(upstream.address).start().await;
    for status in [200, 201, 202, 400, 402, 404, 409, 422] {
        let before = upstream.heads().len();
        let request = post(&format!("/{status}"), "k", "ten");
        for replayed in [false, true] {
            let answer = ask(gateway.address, &request).await.unwrap();
            let heard = (answer.status, answer.text(), answer.header("x-own"), answer.is_replay());
            assert_eq!(heard, (status, "said", Some("1"), replayed));
        }
        assert_eq!(upstream.heads().len(), before + 1, "{status}");
    }
}

#[tokio::test]
async fn a_key_where_nothing_is_protected_does_no_harm() {
    let world = World::start("otherwise = \"pass\"\n").await;
    let mut connection = Connection::open(world.gateway.address).await;
    for value in ["\"k\"", "\"k\"", "\"unclosed", "a, b"] {
        connection.send(request("/pay", key(value))).await;
        let answer = connection.answer().await.unwrap();
        assert_eq!((answer.status, answer.is_replay()), (201, false), "{value}");
    }
    assert_eq!((world.upstream.total(), world.claimed().await.len()), (4, 0));
}
