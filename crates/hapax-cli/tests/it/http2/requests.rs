//! Requests any client can send.

use super::{Client, post};
use crate::{
    wire::{ROUTES, World, fresh},
    world::until,
};

#[tokio::test]
async fn what_is_not_one_key_is_refused_and_the_connection_goes_on() {
    let world = World::start(ROUTES).await;
    let mut client = Client::open(world.gateway.address).await;
    let long = "x".repeat(256);
    for (name, keys, code) in [
        ("missing", &[][..], "key-missing"),
        ("empty", &[&b""[..]], "key-empty"),
        ("empty string", &[b"\"\""], "key-empty"),
        ("256 characters", &[long.as_bytes()], "key-too-long"),
        ("twice, the same", &[b"a", b"a"], "key-repeated"),
        ("twice, different", &[b"a", b"b"], "key-repeated"),
        ("list", &[b"\"a\", \"b\""], "key-malformed"),
        ("parameter", &[b"\"a\";v=1"], "key-malformed"),
        ("unclosed quote", &[b"\"a"], "key-malformed"),
        ("bad escape", &[b"\"a\\n\""], "key-malformed"),
        ("tab", &[b"a\tb"], "key-malformed"),
        ("UTF-8", &["caf\u{e9}".as_bytes()], "key-malformed"),
    ] {
        let request = keys.iter().fold(post("/pay"), |request, key| {
            request.header("idempotency-key", http::HeaderValue::from_bytes(key).unwrap())
        });
        let answer = client.ask(request, "ten").await.unwrap();
        assert_eq!((answer.status, answer.code().as_deref()), (400, Some(code)), "{name}");
        assert_eq!((world.upstream.total(), world.claimed().await.len()), (0, 0), "{name}");
    }
    let good = post("/pay").header("idempotency-key", "a");
    assert_eq!(client.ask(good, "ten").await.unwrap().status, 201);
}

#[tokio::test]
async fn a_retry_is_replayed_whichever_protocol_it_comes_by() {
    let world = World::start(ROUTES).await;
    let mut client = Client::open(world.gateway.address).await;
    let keyed = || post("/pay").header("idempotency-key", "k").header("content-type", "text/plain");
    let first = client.ask(keyed(), "ten").await.unwrap();
    assert_eq!((first.status, first.text(), first.is_replay()), (201, "receipt 1 for ten", false));
    let again = client.ask(keyed(), "ten").await.unwrap();
    assert_eq!((&again.body, again.is_replay()), (&first.body, true));
    let older = world.ask(crate::world::post("/pay", "k", "ten")).await;
    assert_eq!((&older.body, older.is_replay()), (&first.body, true));
    let other = client.ask(keyed(), "eleven").await.unwrap();
    assert_eq!((other.status, other.code().as_deref()), (422, Some("key-reused")));
    assert_eq!(world.upstream.total(), 1);
}

#[tokio::test]
async fn nobody_hears_what_belongs_to_somebody_else() {
    let world = World::start(ROUTES).await;
    let mut client = Client::open(world.gateway.address).await;
    let by = |who: &str| {
        http::Request::post("http://gateway/pay")
            .header("authorization", who)
            .header("idempotency-key", "k")
    };
    let alice = client.ask(by("alice"), "ten").await.unwrap();
    let bob = client.ask(by("bob"), "ten").await.unwrap();
    assert!(!bob.is_replay() && bob.body != alice.body, "{bob:?}");
    let nobody = http::Request::post("http://gateway/pay").header("idempotency-key", "k");
    let refused = client.ask(nobody, "ten").await.unwrap();
    assert_eq!((refused.status, refused.code().as_deref()), (401, Some("credential-missing")));
    assert_eq!(world.upstream.total(), 2);
}

#[tokio::test]
async fn a_body_over_its_cap_is_refused_and_the_connection_goes_on() {
    let world = World::start(ROUTES).await;
    let mut client = Client::open(world.gateway.address).await;
    for len in [1025, 100 << 10, 4 << 20] {
        let request = post("/small").header("idempotency-key", "k");
        let answer = client.ask(request, &"x".repeat(len)).await;
        // The answer may be followed by a reset that says to stop sending.
        if let Some(answer) = answer {
            assert_eq!((answer.status, answer.code().as_deref()), (413, Some("body-too-large")));
        }
        assert_eq!((world.upstream.total(), world.claimed().await.len()), (0, 0), "{len}");
    }
    let request = post("/small").header("idempotency-key", "k");
    assert_eq!(client.ask(request, "ten").await.unwrap().status, 201, "the key is free");
}

#[tokio::test]
async fn what_only_the_gateway_may_say_is_removed() {
    let world = World::start(ROUTES).await;
    let mut client = Client::open(world.gateway.address).await;
    let request = post("/pay")
        .header("idempotency-key", fresh())
        .header("hapax-fence", "99")
        .header("idempotent-replayed", "true")
        .header("expect", "100-continue")
        .header("cookie", "a=1")
        .header("cookie", "b=2");
    let answer = client.ask(request, "ten").await.unwrap();
    assert_eq!((answer.status, answer.is_replay()), (201, false));
    let head = world.upstream.heads().pop().unwrap();
    assert!(head.contains("\"hapax-fence\": \"1\"") && head.contains("\"a=1; b=2\""), "{head}");
    assert!(!head.contains("replayed") && !head.contains("expect"), "{head}");
}

#[tokio::test]
async fn a_new_file_counts_for_the_next_request_on_an_open_connection() {
    let world = World::start("").await;
    let mut client = Client::open(world.gateway.address).await;
    assert_eq!(client.ask(post("/pay"), "ten").await.unwrap().status, 201);
    world.gateway.configure(ROUTES);
    world.gateway.signal("HUP");
    until("the reload", async || world.gateway.log().contains("hapax: reloaded")).await;
    assert_eq!(client.ask(post("/pay"), "ten").await.unwrap().status, 400);
}
